package policycmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/auditcmd"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/bundlecmd"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// maxEvalInput bounds an input file. The proxy refuses larger ones before it asks a policy.
const maxEvalInput = 1 << 20

// evalOptions are the flags of policy eval.
type evalOptions struct {
	audit, id string // a recorded call
	input     string // or an input
	policyDir string
	bundle    string
	config    string // of a proxy
}

// evalReport is the JSON form of the result; its fields are promised to users.
type evalReport struct {
	Schema      string                 `json:"schema"` // pipeguard.dev/policy-eval/v1
	Decision    requestpolicy.Decision `json:"decision"`
	Recorded    *recordedDecision      `json:"recorded,omitempty"`
	Differences []difference           `json:"differences"`
	Notes       []string               `json:"notes"`
	Input       any                    `json:"input"`

	isOfBundle bool  // what is asked now came in a bundle
	doubt      error // what speaks against the log of the record
}

func newEval() *cobra.Command {
	var o evalOptions
	var isVerbose bool
	cmd := &cobra.Command{
		Use:   "eval (--from-audit LOG --id ID | --input FILE)",
		Short: "Ask the request policy of nodes about a recorded call, or about an input",
		Long: `Decides as the proxy would after its access list has allowed a call: by the built-in request policy, and by the modules of package
pipeguard.node in a directory or in a bundle that add to it. They must compile, pass their tests and hold the invariants first.

With --from-audit it makes the input again from the records of the call with that ID, and says where the decision is another one than was
recorded. The time of the input is when the call arrived. Neither holds secrets: a policy never sees them. The record does not say whether the
caller is named: the access list of --config or --bundle is asked about the call, as of that time; without either, the caller is not named. The
input of --input says so itself.

With -o json it prints one object:
  schema       "pipeguard.dev/policy-eval/v1"
  decision     {effect, rule, reason, revision, findings: [{code, effect, field, message}]}; effect is allow or deny
  recorded     {effect, rule, reason, policy, revision, bundle, mode, time}; left out with --input
  differences  [{field, recorded, now}]; field is effect or rule
  notes        texts: what may explain a difference, or what could not be compared
  input        what the policy was asked about

Exit code: with --input 0 allowed, 1 denied; with --from-audit 0 the same decision as was recorded (or none of this policy was),
1 another one, or the log was changed; 2 the record, the input or the policy cannot be read, or the policy would not be activated; 3 the log
is incomplete or contradicts itself, as for "pipeguard audit check". Standard error says what is wrong with a log.`,
		Example: `  pipeguard policy eval --from-audit /var/log/pipeguard/audit --id BQ5WDWNJNUOT6EY4VKEBLCQCXR
  pipeguard policy eval --from-audit /var/log/pipeguard/audit --id BQ5WDWNJNUOT6EY4VKEBLCQCXR --config proxy.yaml --policy ./my-policies
  pipeguard policy eval --from-audit /var/log/pipeguard/audit --id BQ5WDWNJNUOT6EY4VKEBLCQCXR --bundle bundle.tar.gz
  pipeguard policy eval --input policies/node/examples/service_control/input.json`,
		Args: cli.NoArguments(": the call is named with --from-audit or --input"),
	}
	out := cli.AddFormat(cmd)
	cli.Text(cmd, &o.audit, "from-audit", "", "log of audit records: a directory, a file, or - for standard input")
	cli.Text(cmd, &o.id, "id", "", "id of the recorded call, as audit show --wide has it")
	cli.Text(cmd, &o.input, "input", "", "file with an input in JSON, or - for standard input")
	cli.Text(cmd, &o.policyDir, "policy", "", "directory of policies that add to the built-in request policy")
	cli.Text(cmd, &o.bundle, "bundle", "", "bundle whose modules are asked, and whose policies say who is named; its signature is not looked at")
	cli.Text(cmd, &o.config, "config", "", "configuration of a proxy, whose rules say who is named, and whose modules are asked unless --policy is there")
	cmd.Flags().BoolVarP(&isVerbose, "verbose", "v", false, "print the input, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return eval(cmd, o, out, isVerbose) }
	return cmd
}

func (o evalOptions) check() error {
	switch {
	case o.input == "" && o.audit == "":
		return errors.New("name a recorded call with --from-audit and --id, or an input with --input")
	case o.bundle != "" && (o.policyDir != "" || o.config != ""):
		return errors.New("a bundle has policies and an access list of its own: leave --policy and --config out")
	case o.input != "" && (o.audit != "" || o.id != ""):
		return errors.New("--input and --from-audit exclude each other")
	case o.audit != "" && o.id == "":
		return errors.New("--from-audit needs --id; \"pipeguard audit show --wide\" lists ids")
	}
	return nil
}

func eval(cmd *cobra.Command, o evalOptions, out *cli.Choice, isVerbose bool) error {
	if err := o.check(); err != nil {
		return cli.BadInput(err)
	}
	report := evalReport{Schema: "pipeguard.dev/policy-eval/v1", Differences: []difference{}, Notes: []string{}, isOfBundle: o.bundle != ""}
	if err := report.ask(cmd, o); err != nil {
		return cli.BadInput(errors.Join(err, report.doubt))
	}
	isNo := len(report.Differences) > 0 || report.Recorded == nil && !report.Decision.Allowed()
	p := out.Print(cmd, report, func(p *cli.Printer) { report.print(p, isVerbose) })
	if report.doubt != nil {
		return p.Done(report.doubt)
	}
	return p.Answer(!isNo)
}

// ask decides about what the options name.
func (r *evalReport) ask(cmd *cobra.Command, o evalOptions) error {
	if o.input != "" {
		n, err := o.node(cmd, time.Now)
		if err != nil {
			return err
		}
		return r.ofInput(cmd, n.evaluator, o.input)
	}
	event, doubt, err := auditcmd.FindRecord(cmd, o.audit, o.id, fmt.Sprintf("call %q that was decided", o.id), false, func(e *audit.Event) bool { return e.Decision != nil })
	if err != nil {
		return err
	}
	r.doubt = doubt
	n, err := o.node(cmd, func() time.Time { return requestpolicy.Arrival(event) })
	if err != nil {
		return err
	}
	return r.ofRecord(cmd, n, event)
}

// judging is what decides about calls on a node.
type judging struct {
	evaluator *requestpolicy.Evaluator
	list      accessList // nil if none is named
}

// accessList is that of a configuration, or of a bundle.
type accessList interface {
	Decide(access.Call) access.Decision
}

// node is what the options name, as the proxy would activate it.
func (o evalOptions) node(cmd *cobra.Command, now func() time.Time) (judging, error) {
	if o.bundle != "" {
		raw, err := bundle.ReadFile(o.bundle)
		if err != nil {
			return judging{}, err
		}
		b, _, err := bundle.Inspect(raw)
		if err != nil {
			return judging{}, err
		}
		live, err := bundlecmd.Try(cmd.Context(), b, now)
		if err != nil {
			return judging{}, err
		}
		return judging{requestpolicy.Over(live.Engine), live}, nil
	}
	var n judging
	if o.config != "" {
		settings, list, err := loadConfig(o.config)
		if err != nil {
			return judging{}, err
		}
		n.list, o.policyDir = list, cmp.Or(o.policyDir, settings.RequestPolicy.Modules)
	}
	s, err := policysource.LoadNode(o.policyDir, o.config != "")
	if err != nil {
		return judging{}, err
	}
	if len(s.Problems) > 0 {
		return judging{}, errors.New(s.Problems[0].Message)
	}
	if n.evaluator, err = requestpolicy.New(policy.Options{BaseTested: s.IsBuiltIn}); err != nil {
		return judging{}, err
	}
	_, err = n.evaluator.Activate(cmd.Context(), s.Modules)
	return n, err
}

// loadConfig reads a configuration that is there, with its access list.
func loadConfig(file string) (config.Proxy, *acl.Policy, error) {
	settings, err := config.LoadProxy(file)
	if err == nil && settings.IsMissing() {
		err = fmt.Errorf("open %s: there is no such file", file)
	}
	if err != nil {
		return config.Proxy{}, nil, err
	}
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return config.Proxy{}, nil, err
	}
	list, err := settings.Policy(settings.Known(apis))
	return settings, list, err
}

func (r *evalReport) ofInput(cmd *cobra.Command, e *requestpolicy.Evaluator, file string) error {
	var document any
	err := cli.WithFile(cmd, file, func(in io.Reader) error {
		text, err := atmost.ReadAll(in, maxEvalInput)
		if err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // else 64 bits would lose digits
		if err := d.Decode(&document); err != nil {
			return fmt.Errorf("input %s: %w", file, err)
		}
		if d.More() {
			return fmt.Errorf("input %s: more text after the input", file)
		}
		return nil
	})
	if err != nil {
		return err
	}
	input, err := policy.ToValue(document)
	if err != nil {
		return err
	}
	return r.decide(cmd, e, input)
}

func (r *evalReport) decide(cmd *cobra.Command, e *requestpolicy.Evaluator, input ast.Value) error {
	r.Decision = e.DecideInput(cmd.Context(), input)
	var err error
	r.Input, err = ast.JSON(input)
	return err
}

func (r *evalReport) print(p *cli.Printer, isVerbose bool) {
	p.Printf("now       %s\n", inert.Line(sentence(string(r.Decision.Effect), r.Decision.Rule, r.Decision.Reason)))
	p.Printf("revision  %s\n", inert.Line(r.Decision.Revision))
	for _, f := range r.Decision.Findings {
		p.Printf("finding   %s\n", inert.Line(sentence(string(f.Effect), f.Code, f.Message)))
	}
	if r.Recorded != nil {
		p.Printf("recorded  %s\n", inert.Line(sentence(r.Recorded.Effect, r.Recorded.Rule, r.Recorded.Reason)))
	}
	for _, d := range r.Differences {
		p.Printf("DIFFERS   %s: recorded %s, now %s\n", d.Field, inert.Line(orNone(d.Recorded)), inert.Line(orNone(d.Now)))
	}
	for _, note := range r.Notes {
		p.Printf("note      %s\n", inert.Line(note))
	}
	if isVerbose {
		p.JSON(r.Input)
	}
}

func sentence(effect, rule, reason string) string {
	s := effect
	if rule != "" {
		s += " by " + rule
	}
	if reason != "" {
		s += ": " + reason
	}
	return s
}

func orNone(s string) string { return cmp.Or(s, "none") }
