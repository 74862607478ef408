package aclcmd

import (
	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// aclCheckReport is the JSON form of the result; its fields are promised to users.
type checkReport struct {
	Schema   string   `json:"schema"` // pipeguard.dev/acl-check/v1
	OK       bool     `json:"ok"`
	Revision string   `json:"revision,omitempty"`
	Rules    int      `json:"rules"`
	Profiles int      `json:"profiles"`
	LogOnly  int      `json:"logOnly"`
	Faults   []string `json:"faults"`
	Hints    []string `json:"hints"`
	Warnings []string `json:"warnings"`
}

func newCheck() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "check FILE [--caller … --pipe … --method …]",
		Short: "Find the faults of an access list, and what it may not mean; or ask it about one call",
		Long: `Reads FILE as the proxy would and reports each fault as FILE:LINE:COLUMN: FIELD: MESSAGE. A list with a fault is not
taken by a proxy: at its start it does not start, and later it keeps the list that it has.

Warnings stop nothing. They name rules that never decide because an earlier one covers all that they do, permits that
no operation of their rule uses, operations without a path in rules for certain paths, callers that are more than they
seem (a user that all containers share, every pod of a namespace, * for a container, images by tag) and pipes in mode
LogOnly. Rules are named by their place; those of a profile by the profile's.

With -o json it prints one object:
  schema    "pipeguard.dev/acl-check/v1"
  ok        true if there are no faults
  revision  of the list, as in audit records; left out if there are faults
  rules, profiles, logOnly    how many there are; rules with those of profiles
  faults, hints, warnings     lines of text

With a call it answers instead who decides, as the first lines of "pipeguard acl explain" do, which also says of each other
rule why it does not, and has the same JSON and notes:

` + questionHelp + `

Exit code: 0 no faults, 1 faults, 2 FILE cannot be read. Of a call: 0 allowed, 1 denied, 2 the question or FILE has a fault.`,
		Example: `  pipeguard acl check proxy.yaml
  pipeguard acl check proxy.yaml --pipe volume-v1 --method FormatVolume --caller serviceAccount=kube-system/csi-azuredisk-node-sa,container=azuredisk
  pipeguard acl check proxy.yaml --from-audit /var/log/pipeguard/audit --id BQ5WDWNJNUOT6EY4VKEBLCQCXR
  pipeguard acl check -o json - < proxy.yaml`,
		Args: cli.Argument("a configuration of a proxy"),
	}
	q.add(cmd)
	out := cli.AddFormat(cmd, "table", "text")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := loadList(cmd, args[0])
		if err != nil {
			return err
		}
		if q.isAsked() {
			return q.answer(cmd, &l, args[0], out, printVerdict)
		}
		return check(cmd, l, out)
	}
	return cmd
}

func check(cmd *cobra.Command, l list, out *cli.Choice) error {
	spec := l.settings.Spec()
	report := checkReport{
		Schema: "pipeguard.dev/acl-check/v1", OK: l.policy != nil, Rules: len(spec.Rules), Profiles: len(l.settings.ACL.Profiles),
		Faults: append([]string{}, l.faults...), Hints: append([]string{}, l.hints...), Warnings: []string{},
	}
	if report.OK {
		report.Revision = l.policy.Revision()
		report.Warnings = append(report.Warnings, l.settings.Warnings()...)
	}
	for _, m := range spec.Modes {
		if m.Mode == access.LogOnly {
			report.LogOnly++
		}
	}
	return out.Print(cmd, report, func(p *cli.Printer) { printCheck(p, report) }).Answer(report.OK)
}

func printCheck(p *cli.Printer, r checkReport) {
	for _, f := range r.Faults {
		p.Printf("%s\n", inert.Line(f))
	}
	for _, h := range r.Hints {
		p.Printf("hint: %s\n", inert.Line(h))
	}
	for _, w := range r.Warnings {
		p.Printf("warning: %s\n", inert.Line(w))
	}
	if r.OK {
		p.Printf("in order: %d rules, those of %d profiles among them, %d modes LogOnly, %d warnings, revision %s\n",
			r.Rules, r.Profiles, r.LogOnly, len(r.Warnings), r.Revision)
	}
}
