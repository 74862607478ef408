package policycmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/internal/policy"
)

func newFloor() *cobra.Command {
	var with policysource.Additions
	var name string
	var static bool
	cmd := &cobra.Command{
		Use:   "floor",
		Short: "Print the ValidatingAdmissionPolicies that hold without the webhook",
		Long: `Prints, as YAML for kubectl apply, what the webhook writes and keeps with floor.mode Always or Only: policies in CEL that the API
server evaluates itself, with their bindings, made of the parameters and PipePolicies. They never admit what the webhook's built-in
rules would refuse by these, and refuse more: paths that are not plain, and an expiring subject's pods on update. PolicyModules cannot be
said in CEL, and are left out with a warning. Nothing keeps the printed policies up to date: print them again when policies change.

With --static the names end in .static.k8s.io, for the directory of staticManifestsDir in the API server's admission configuration
(feature gate ManifestBasedAdmissionControlConfig: alpha in Kubernetes 1.36, on by default since 1.37). Write the file elsewhere and rename it into that directory: an
empty or removed file unloads the policies, and then every pod is admitted.

Exit code: 0 printed, 2 the parameters or the objects cannot be read, do not work, or are too many for a floor.`,
		Args: cli.NoArguments("the floor is made of parameters and PipePolicies: name them with --params and --policies"),
	}
	with.Add(cmd)
	cli.Text(cmd, &name, "name", "", "name of the objects about pods; those about PersistentVolumes have -volumes behind it (default pipeguard-floor)")
	cmd.Flags().BoolVar(&static, "static", false, "name the objects as an API server wants them that reads them from files")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o := floor.Options{Name: "pipeguard-floor", Static: static}
		if name != "" {
			o.Name = name
		}
		if faults := validation.NameIsDNSSubdomain(o.Name, false); len(faults) > 0 {
			return cli.BadInput(fmt.Errorf("--name %q: %s", o.Name, faults[0]))
		}
		return printFloor(cmd, with, o)
	}
	return cmd
}

func printFloor(cmd *cobra.Command, with policysource.Additions, o floor.Options) error {
	s, err := policysource.Load("", with, cmd.InOrStdin())
	if err != nil {
		return cli.BadInput(err)
	}
	warnings := s.Warnings
	for i := range s.Objects.PolicyModules {
		warnings = append(warnings, "PolicyModule "+s.Objects.PolicyModules[i].Name+": no floor can say it: where no webhook answers, it refuses nothing")
	}
	if err := policysource.Warn(cmd, warnings); err != nil {
		return err
	}
	engine, err := policy.New(policy.Options{BaseTested: s.IsBuiltIn, Timeout: time.Minute})
	if err != nil {
		return cli.BadInput(err)
	}
	active, err := engine.Activate(cmd.Context(), s.Modules)
	if err != nil {
		return cli.BadInput(err)
	}
	o.Policies, o.Revision = s.Objects.Policies(), active.Revision()
	made, err := floor.New(o)
	if err != nil {
		return cli.BadInput(err)
	}
	p := cli.NewPrinter(cmd.OutOrStdout())
	for _, object := range made.Objects() {
		text, err := yaml.Marshal(object)
		if err != nil {
			return cli.BadInput(errors.Join(errors.New("encode the floor"), err))
		}
		p.Printf("---\n%s", text)
	}
	return p.Done(nil)
}
