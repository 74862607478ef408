// Package policysource loads policies, parameters and policy objects from files, and combines them as the webhook and the proxy do.
package policysource

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/plainyaml"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/policies"
)

// Sources are the policies that give a verdict, and where they come from.
type Sources struct {
	Modules policy.Modules // with the data that parameters give
	// Objects are the parts of policies of admission.
	Objects policyset.Sources
	// IsBuiltIn is true if the base of the modules is the built-in policy, whose tests passed when this program was made.
	IsBuiltIn bool
	// IsOfNode is true for a request policy.
	IsOfNode bool
	// IsWholeNode is true for a request policy that replaces the built-in one instead of adding to it.
	IsWholeNode bool
	// Problems say why the policies cannot be combined; nothing is compiled then.
	Problems []policy.Problem
	// Warnings name likely mistakes in policy objects.
	Warnings []string
	// Options are those of the engine; the zero value is for policies of admission.
	Options policy.Options
}

// Additions are the flags that name parameters and policy objects beside a directory of policies.
type Additions struct {
	Params  string   // a file
	Objects []string // files with policy objects
}

// Add adds the flags to a command.
func (a *Additions) Add(cmd *cobra.Command) {
	cli.Text(cmd, &a.Params, "params", "", "parameters file (YAML); without it, the webhook's defaults")
	cmd.Flags().StringArrayVar(&a.Objects, "policies", nil, "file, directory or - with PipePolicy and PolicyModule objects; may be repeated")
}

// Load reads policies from a directory, parameters from a file and objects from files, and combines them as the
// webhook does. Without a directory it takes the built-in policies, without parameters the default ones.
func Load(policyDir string, with Additions, stdin io.Reader) (Sources, error) {
	s := policyset.Sources{Parameters: admission.DefaultParameters()}
	var err error
	if with.Params != "" {
		if s.Parameters, err = admission.LoadParameters(with.Params, policyset.ReadPipePolicy); err != nil {
			return Sources{}, err
		}
	}
	if err := ReadPolicies(&s, with.Objects, stdin); err != nil {
		return Sources{}, err
	}
	return Combine(policyDir, s)
}

// Combine reads policies from a directory, the built-in ones without it, as the base of s.
func Combine(policyDir string, s policyset.Sources) (Sources, error) {
	var err error
	if s.Base, err = LoadModules(policyDir); err != nil {
		return Sources{}, err
	}
	if policyDir != "" {
		if s.Base, _ = byKind(s.Base); len(s.Base.Files) == 0 {
			return Sources{}, fmt.Errorf("%s holds policies of nodes only", policyDir)
		}
	}
	out := Sources{Objects: s, IsBuiltIn: policyDir == "", Warnings: append(Warnings(s.PipePolicies, time.Now()), s.Parameters.Warnings()...)}
	out.Modules, err = s.Assemble()
	return out, err
}

// Warnings returns the warnings about PipePolicies, each with the name of its policy.
func Warnings(policies []v1alpha1.PipePolicy, now time.Time) (out []string) {
	for i := range policies {
		for _, text := range policyset.Warnings(&policies[i], now) {
			out = append(out, "PipePolicy "+policies[i].Name+": "+text)
		}
	}
	return out
}

// Warn prints warnings on standard error.
func Warn(cmd *cobra.Command, texts []string) error {
	p := cli.NewPrinter(cmd.ErrOrStderr())
	for _, text := range texts {
		p.Printf("warning: %s\n", inert.Line(text))
	}
	return p.Done(nil)
}

// ReadPolicies adds the policy objects of files. Anything else in them is an error.
func ReadPolicies(s *policyset.Sources, files []string, stdin io.Reader) error {
	if len(files) == 0 {
		return nil
	}
	objects, faults := manifest.ReadFiles(files, stdin)
	var errs []error
	for _, f := range faults {
		errs = append(errs, f)
	}
	for _, o := range objects {
		err := plainyaml.Check(o.YAML)
		if err != nil {
			err = fmt.Errorf("lines counted within the document: %w", err)
		}
		if err = errors.Join(err, s.Add(o.APIVersion, o.Kind, o.JSON)); err != nil {
			errs = append(errs, manifest.Fault{Place: o.Place, Err: err})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	return nil
}

// LoadModules reads the Rego of a directory, or the built-in policies of admission if none is named.
func LoadModules(dir string) (policy.Modules, error) {
	if dir == "" {
		return policy.LoadFS(policies.FS())
	}
	info, err := os.Stat(dir)
	if err != nil {
		return policy.Modules{}, err
	}
	if !info.IsDir() {
		return policy.Modules{}, fmt.Errorf("%s is not a directory", dir)
	}
	modules, err := policy.LoadFS(os.DirFS(dir))
	if err != nil {
		return policy.Modules{}, fmt.Errorf("%s: %w", dir, err)
	}
	if len(modules.Files) == 0 {
		return policy.Modules{}, fmt.Errorf("%s holds no *.rego", dir)
	}
	return modules, nil
}
