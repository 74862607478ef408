package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/request"
)

// maxEvalInput bounds an input file. The proxy refuses larger ones before it asks a policy.
const maxEvalInput = 1 << 20

// evalOptions are the flags of policy eval.
type evalOptions struct {
	audit, id string // a recorded call
	input     string // or an input
	policyDir string
	params    string
	bundle    string
	config    string // of a proxy
}

// evalReport is the JSON form of the result; its fields are promised to users.
type evalReport struct {
	Schema      string           `json:"schema"` // pipeguard.dev/policy-eval/v1
	Decision    request.Decision `json:"decision"`
	Recorded    *recordedCall    `json:"recorded,omitempty"`
	Differences []difference     `json:"differences"`
	Notes       []string         `json:"notes"`
	Input       any              `json:"input"`

	isOfBundle bool // what is asked now came in a bundle
}

func newPolicyEval() *cobra.Command {
	var o evalOptions
	var isVerbose bool
	cmd := &cobra.Command{
		Use:   "eval (--from-audit LOG --id ID | --input FILE)",
		Short: "Ask the request policy of nodes about a recorded call, or about an input",
		Long: `Decides as the proxy would after its access list has allowed a call: by the built-in request policy, and by the modules of package
pipeguard.node in a directory or in a bundle that add to it. They must compile, pass their tests and hold the invariants first.

With --from-audit it makes the input again from the records of the call with that ID, and says where the decision is another one than was
recorded. The time of the input is when the call arrived. Secrets are in neither: a policy never sees them.

With -o json it prints one object:
  schema       "pipeguard.dev/policy-eval/v1"
  decision     {effect, rule, reason, revision, findings: [{code, effect, field, message}]}; effect is allow or deny
  recorded     {effect, rule, reason, policy, revision, bundle, mode, time}; left out with --input
  differences  [{field, recorded, now}]; field is effect or rule
  notes        texts: what may explain a difference, or what could not be compared
  input        what the policy was asked about

Exit code: with --input 0 allowed, 1 denied; with --from-audit 0 the same decision as was recorded (or none of this policy was),
1 another one; 2 the record, the input or the policy cannot be read, or the policy would not be activated.`,
		Example: `  pipeguard policy eval --from-audit /var/log/pipeguard/audit --id BQ5WDWNJNUOT6EY4VKEBLCQCXR
  pipeguard policy eval --from-audit /var/log/pipeguard/audit --id BQ5WDWNJNUOT6EY4VKEBLCQCXR --config proxy.yaml --policy ./my-policies
  pipeguard policy eval --from-audit /var/log/pipeguard/audit --id BQ5WDWNJNUOT6EY4VKEBLCQCXR --bundle bundle.tar.gz
  pipeguard policy eval --input policies/node/examples/service_control/input.json`,
		Args: noArguments(": the call is named with --from-audit or --input"),
	}
	out := addFormat(cmd)
	cmd.Flags().StringVar(&o.audit, "from-audit", "", "log of audit records: a directory, a file, or - for standard input")
	cmd.Flags().StringVar(&o.id, "id", "", "id of the recorded call, as audit show --wide has it")
	cmd.Flags().StringVar(&o.input, "input", "", "file with an input in JSON, or - for standard input")
	cmd.Flags().StringVar(&o.policyDir, "policy", "", "directory of policies that add to the built-in request policy")
	cmd.Flags().StringVar(&o.params, "params", "", "parameters file of the request policy (YAML); without it, nobody is named")
	cmd.Flags().StringVar(&o.bundle, "bundle", "", "bundle whose policies and named callers are asked; its signature is not looked at")
	cmd.Flags().StringVar(&o.config, "config", "", "configuration of a proxy: who is named in it and by its rules, and its modules unless --policy is there")
	cmd.Flags().BoolVarP(&isVerbose, "verbose", "v", false, "print the input, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return policyEval(cmd, o, *out, isVerbose) }
	return cmd
}

func (o evalOptions) check() error {
	switch {
	case o.input == "" && o.audit == "":
		return errors.New("name a recorded call with --from-audit and --id, or an input with --input")
	case o.bundle != "" && (o.policyDir != "" || o.params != "" || o.config != ""):
		return errors.New("a bundle has policies and parameters of its own: leave --policy, --params and --config out")
	case o.config != "" && o.params != "":
		return errors.New("a configuration has the parameters: leave --params out")
	case o.input != "" && (o.audit != "" || o.id != ""):
		return errors.New("--input and --from-audit exclude each other")
	case o.audit != "" && o.id == "":
		return errors.New("--from-audit needs --id; \"pipeguard audit show --wide\" lists ids")
	}
	return nil
}

func policyEval(cmd *cobra.Command, o evalOptions, out format, isVerbose bool) error {
	if err := o.check(); err != nil {
		return badInput(err)
	}
	evaluator, err := nodeEvaluator(cmd, o)
	if err != nil {
		return badInput(err)
	}
	report := evalReport{Schema: "pipeguard.dev/policy-eval/v1", Differences: []difference{}, Notes: []string{}, isOfBundle: o.bundle != ""}
	if o.input != "" {
		err = report.ofInput(cmd, evaluator, o.input)
	} else {
		err = report.ofRecord(cmd, evaluator, o.audit, o.id)
	}
	if err != nil {
		return badInput(err)
	}
	p := printer{w: cmd.OutOrStdout()}
	if out == formatJSON {
		p.json(report)
	} else {
		report.print(&p, isVerbose)
	}
	if isNo := len(report.Differences) > 0 || report.Recorded == nil && !report.Decision.Allowed(); isNo {
		return p.done(no(nil))
	}
	return p.done(nil)
}

// nodeEvaluator activates a request policy as the proxy would.
func nodeEvaluator(cmd *cobra.Command, o evalOptions) (*request.Evaluator, error) {
	s, err := o.sources()
	if err != nil {
		return nil, err
	}
	if len(s.problems) > 0 {
		return nil, errors.New(s.problems[0].Message)
	}
	evaluator, err := request.New(policy.Options{BaseTested: s.isBuiltIn})
	if err != nil {
		return nil, err
	}
	_, err = evaluator.Activate(cmd.Context(), s.modules)
	return evaluator, err
}

// sources are what the options name beside what is built in.
func (o evalOptions) sources() (sources, error) {
	if o.bundle != "" {
		raw, err := bundle.ReadFile(o.bundle)
		if err != nil {
			return sources{}, err
		}
		b, _, err := bundle.Inspect(raw)
		if err != nil {
			return sources{}, err
		}
		m, err := request.Modules(b.Modules, b.Data)
		return sources{modules: m, isBuiltIn: true}, err
	}
	var settings config.Proxy
	if o.config != "" {
		var err error
		if settings, err = loadConfig(o.config); err != nil {
			return sources{}, err
		}
		o.policyDir = cmp.Or(o.policyDir, settings.RequestPolicy.Modules)
	}
	modules := policy.Modules{}
	if o.policyDir != "" {
		all, err := loadModules(o.policyDir)
		if err != nil {
			return sources{}, err
		}
		if _, modules = byKind(all); len(modules.Files) == 0 {
			return sources{}, fmt.Errorf("%s holds no policies of nodes: none is of package pipeguard.node", o.policyDir)
		}
	}
	if o.config != "" {
		return besideBuiltIn(modules, settings.Parameters()), nil
	}
	return nodeSources(modules, o.params)
}

// loadConfig reads a configuration that is there.
func loadConfig(file string) (config.Proxy, error) {
	settings, err := config.LoadProxy(file)
	if err == nil && settings.IsMissing() {
		err = fmt.Errorf("open %s: there is no such file", file)
	}
	return settings, err
}

func (r *evalReport) ofInput(cmd *cobra.Command, e *request.Evaluator, file string) error {
	var document any
	err := withFile(cmd, file, func(in io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(in, maxEvalInput+1))
		if err == nil && len(text) > maxEvalInput {
			err = fmt.Errorf("more than %d bytes", maxEvalInput)
		}
		if err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // else 64 bits would lose digits
		if err := d.Decode(&document); err != nil {
			return fmt.Errorf("input %s: %w", file, err)
		}
		if d.More() {
			return fmt.Errorf("input %s: something follows the input", file)
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

func (r *evalReport) decide(cmd *cobra.Command, e *request.Evaluator, input ast.Value) error {
	r.Decision = e.DecideInput(cmd.Context(), input)
	var err error
	r.Input, err = ast.JSON(input)
	return err
}

func (r *evalReport) print(p *printer, isVerbose bool) {
	p.printf("now       %s\n", inert.Line(sentence(string(r.Decision.Effect), r.Decision.Rule, r.Decision.Reason)))
	p.printf("revision  %s\n", inert.Line(r.Decision.Revision))
	for _, f := range r.Decision.Findings {
		p.printf("finding   %s\n", inert.Line(sentence(string(f.Effect), f.Code, f.Message)))
	}
	if r.Recorded != nil {
		p.printf("recorded  %s\n", inert.Line(sentence(r.Recorded.Effect, r.Recorded.Rule, r.Recorded.Reason)))
	}
	for _, d := range r.Differences {
		p.printf("DIFFERS   %s: recorded %s, now %s\n", d.Field, inert.Line(orNone(d.Recorded)), inert.Line(orNone(d.Now)))
	}
	for _, note := range r.Notes {
		p.printf("note      %s\n", inert.Line(note))
	}
	if isVerbose {
		p.json(r.Input)
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
