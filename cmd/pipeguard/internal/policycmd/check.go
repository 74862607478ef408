package policycmd

import (
	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// checkReport is the JSON form of the result; its fields are promised to users.
type checkReport struct {
	Schema   string           `json:"schema"` // pipeguard.dev/policy-check/v1
	OK       bool             `json:"ok"`
	Modules  int              `json:"modules"`
	Problems []policy.Problem `json:"problems"`
}

func newCheck() *cobra.Command {
	var with policysource.Additions
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Parse and compile policies under the limits of the webhook",
		Long: `Reports every problem as FILE:LINE:COLUMN: CODE: MESSAGE, files relative to DIR. Tests are compiled, but
not run: that is done by "pipeguard policy test". Without DIR, the built-in policies stand for it: with --policies, that is what a
cluster would compile. The files of a PolicyModule are called policymodules/OBJECT/FILE. Modules of package pipeguard.node are
policies of nodes, and are compiled as the proxy would, beside its built-in request policy, whose modules are counted too; DIR
may hold both kinds, in subdirectories.

PipePolicies are held to the same conditions as in a cluster. What their authors may not have meant, such as a subject that has
expired, is a warning on standard error; so is a note if rules read input.object, which not every object in a cluster reaches.

With -o json it prints one object:
  schema    "pipeguard.dev/policy-check/v1"
  ok        true if there are no problems
  modules   how many modules were read, tests among them
  problems  [{file, line, col, code, message}]; file, line and col are left out where a problem has none.
            Codes that begin with rego_ are OPA's; the others are limit, reserved, builtin, entry_point, metadata,
            data, addition, name and internal

Exit code: 0 no problems, 1 problems, 2 DIR, the parameters or the objects cannot be read.`,
		Args: directoryOr(&with),
	}
	out := cli.AddFormat(cmd)
	with.Add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := policysource.LoadAll(cmd.Flags().Arg(0), with, cmd.InOrStdin())
		if err != nil {
			return cli.BadInput(err)
		}
		return check(cmd, s, out)
	}
	return cmd
}

// noteOnObject is for authors of rules that read input.object.
const noteOnObject = "rules read input.object: in a cluster they are asked only about objects that the webhook's match conditions send, " +
	"which are those with a host path other than a plain one of Linux, a HostProcess container or an annotation of microsoft.com; " +
	"a ValidatingAdmissionPolicy can judge the others"

func check(cmd *cobra.Command, all []policysource.Sources, out *cli.Choice) error {
	report := checkReport{Schema: "pipeguard.dev/policy-check/v1", Problems: []policy.Problem{}}
	for _, s := range all {
		if err := policysource.Warn(cmd, s.Warnings); err != nil {
			return err
		}
		report.Modules += len(s.Modules.Files)
		if len(s.Problems) > 0 {
			report.Problems = append(report.Problems, s.Problems...)
			continue
		}
		readsObject, problems := policy.Inspect(s.Modules, s.Options)
		if len(problems) == 0 && s.Modules.Base != nil && !s.IsBuiltIn { // its tests know nothing of what was added
			problems = policy.Validate(*s.Modules.Base, s.Options)
		}
		report.Problems = append(report.Problems, problems...)
		if readsObject && !s.IsOfNode {
			p := cli.NewPrinter(cmd.ErrOrStderr())
			if p.Printf("note: %s\n", noteOnObject); p.Err != nil {
				return p.Done(nil)
			}
		}
	}
	report.OK = len(report.Problems) == 0
	return out.Print(cmd, report, func(p *cli.Printer) {
		for _, problem := range report.Problems {
			p.Printf("%s\n", inert.Line(problem.String()))
		}
		if report.OK {
			p.Printf("%d modules, no problems\n", report.Modules)
			printWhole(p, all)
		}
	}).Answer(report.OK)
}
