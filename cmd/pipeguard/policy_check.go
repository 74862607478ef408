package main

import (
	"github.com/spf13/cobra"

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

func newPolicyCheck() *cobra.Command {
	var with additions
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
	out := addFormat(cmd)
	with.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := loadAllSources(first(args), with, cmd.InOrStdin())
		if err != nil {
			return badInput(err)
		}
		return policyCheck(cmd, s, out)
	}
	return cmd
}

// noteOnObject is for authors of rules that read input.object.
const noteOnObject = "rules read input.object: in a cluster they are asked only about objects that the webhook's match conditions send, " +
	"which are those with a host path other than a plain one of Linux, a HostProcess container or an annotation of microsoft.com; " +
	"a ValidatingAdmissionPolicy can judge the others"

func policyCheck(cmd *cobra.Command, all []sources, out *choice) error {
	report := checkReport{Schema: "pipeguard.dev/policy-check/v1", Problems: []policy.Problem{}}
	for _, s := range all {
		if err := warn(cmd, s.warnings); err != nil {
			return err
		}
		report.Modules += len(s.modules.Files)
		if len(s.problems) > 0 {
			report.Problems = append(report.Problems, s.problems...)
			continue
		}
		readsObject, problems := policy.Inspect(s.modules, s.options)
		if len(problems) == 0 && s.modules.Base != nil && !s.isBuiltIn { // its tests know nothing of what was added
			problems = policy.Validate(*s.modules.Base, s.options)
		}
		report.Problems = append(report.Problems, problems...)
		if readsObject && !s.isOfNode {
			p := newPrinter(cmd.ErrOrStderr())
			if p.printf("note: %s\n", noteOnObject); p.err != nil {
				return p.done(nil)
			}
		}
	}
	report.OK = len(report.Problems) == 0
	return out.print(cmd, report, func(p *printer) {
		for _, problem := range report.Problems {
			p.printf("%s\n", inert.Line(problem.String()))
		}
		if report.OK {
			p.printf("%d modules, no problems\n", report.Modules)
			printWhole(p, all)
		}
	}).answer(report.OK)
}
