package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/plainyaml"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/policies"
)

// sources are what a verdict rests on.
type sources struct {
	modules policy.Modules // with what follows from the parameters
	// objects are what a verdict on objects was put together from.
	objects policyset.Sources
	// isBuiltIn is true if the base of the modules is the built-in policy, whose tests passed when this program was made.
	isBuiltIn bool
	// isOfNode is true for a request policy.
	isOfNode bool
	// isWholeNode is true for a request policy that adds nothing to the built-in one, but stands for it.
	isWholeNode bool
	// problems are why what was read cannot be put together; nothing is compiled then.
	problems []policy.Problem
	// warnings are what authors of policy objects may not have meant.
	warnings []string
	// options are how these policies are compiled and asked; of admission, as they are by default.
	options policy.Options
}

// additions are what decides beside the policies of a directory.
type additions struct {
	params  string   // a file
	objects []string // files with policy objects
}

func (a *additions) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.params, "params", "", "parameters file (YAML); without it, the webhook's defaults")
	cmd.Flags().StringArrayVar(&a.objects, "policies", nil, "file, directory or - with PipePolicy and PolicyModule objects; may be repeated")
}

// loadSources reads policies from a directory, parameters from a file and objects from files, and puts them together as the
// webhook does. An empty name means what is built in.
func loadSources(policyDir string, with additions, stdin io.Reader) (sources, error) {
	s := policyset.Sources{Parameters: admission.DefaultParameters()}
	var err error
	if with.params != "" {
		if s.Parameters, err = admission.LoadParameters(with.params, policyset.ReadPipePolicy); err != nil {
			return sources{}, err
		}
	}
	if s.Base, err = loadModules(policyDir); err != nil {
		return sources{}, err
	}
	if policyDir != "" {
		if s.Base, _ = byKind(s.Base); len(s.Base.Files) == 0 {
			return sources{}, fmt.Errorf("%s holds policies of nodes only", policyDir)
		}
	}
	if err := readPolicies(&s, with.objects, stdin); err != nil {
		return sources{}, err
	}
	out := sources{objects: s, isBuiltIn: policyDir == "", warnings: append(warnings(s.PipePolicies, time.Now()), s.Parameters.Warnings()...)}
	out.modules, err = s.Assemble()
	return out, err
}

// warnings are those of all PipePolicies, with their names.
func warnings(policies []v1alpha1.PipePolicy, now time.Time) (out []string) {
	for i := range policies {
		for _, text := range policyset.Warnings(&policies[i], now) {
			out = append(out, "PipePolicy "+policies[i].Name+": "+text)
		}
	}
	return out
}

// warn prints warnings where they do not mix with results.
func warn(cmd *cobra.Command, texts []string) error {
	p := newPrinter(cmd.ErrOrStderr())
	for _, text := range texts {
		p.printf("warning: %s\n", inert.Line(text))
	}
	return p.done(nil)
}

// readPolicies adds the policy objects of files. Anything else in them is an error.
func readPolicies(s *policyset.Sources, files []string, stdin io.Reader) error {
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

// loadModules reads a directory, or the policies that are built in if none is named.
func loadModules(dir string) (policy.Modules, error) {
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
