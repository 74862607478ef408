package policycmd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// testReport is the JSON form of the result; its fields are promised to users.
type testReport struct {
	Schema     string           `json:"schema"` // pipeguard.dev/policy-test/v1
	OK         bool             `json:"ok"`
	Passed     int              `json:"passed"`
	Failed     int              `json:"failed"`
	Skipped    int              `json:"skipped"`
	Tests      []testLine       `json:"tests"`
	Invariants invariants       `json:"invariants"`
	Problems   []policy.Problem `json:"problems"`
}

type testLine struct {
	Package string `json:"package"`
	Name    string `json:"name"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Outcome string `json:"outcome"` // passed, failed or skipped
	Message string `json:"message,omitempty"`
}

// invariants are what must hold of every policy before the webhook activates it.
type invariants struct {
	Outcome string `json:"outcome"` // passed, failed, or skipped because tests failed
	Count   int    `json:"count"`
	Message string `json:"message,omitempty"`
}

const (
	outcomePassed  = "passed"
	outcomeFailed  = "failed"
	outcomeSkipped = "skipped"
)

func newTest() *cobra.Command {
	var with policysource.Additions
	var isVerbose bool
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the tests of policies and the invariants of the webhook",
		Long: `Compiles DIR, runs every rule test_… of its *_test.rego, and then what the webhook asks of any policy before it
activates it: that a known breach is refused, that missing parameters refuse, and more. A policy without tests fails.
Without DIR, the built-in policies stand for it: with --policies, that is what a cluster would test.
Modules of package pipeguard.node are policies of nodes: they are tested as the proxy would, beside its built-in request policy,
which they add to. The proxy also asks for instance that a service is not stopped for an unknown caller. --params is
then its file of named callers. DIR may hold both kinds, in subdirectories; --params is then the webhook's.

With -o json it prints one object:
  schema      "pipeguard.dev/policy-test/v1"
  ok          true if the webhook would activate this policy
  passed, failed, skipped    numbers of tests
  tests       [{package, name, file, line, outcome, message}]; outcome is passed, failed or skipped
  invariants  {outcome, count, message}; skipped if a test failed
  problems    [{file, line, col, code, message}] if it does not compile; nothing was run then

Exit code: 0 the webhook would activate it, 1 it would not, 2 DIR, the parameters or the objects cannot be read.`,
		Args: directoryOr(&with),
	}
	out := cli.AddFormat(cmd)
	with.Add(cmd)
	cmd.Flags().BoolVarP(&isVerbose, "verbose", "v", false, "list the tests that passed, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := policysource.LoadAll(cmd.Flags().Arg(0), with, cmd.InOrStdin())
		if err != nil {
			return cli.BadInput(err)
		}
		return test(cmd, s, out, isVerbose)
	}
	return cmd
}

func test(cmd *cobra.Command, all []policysource.Sources, out *cli.Choice, isVerbose bool) error {
	var report testReport
	for i, s := range all {
		one, err := runTests(cmd, s)
		if err != nil {
			return cli.BadInput(err)
		}
		if i == 0 {
			report = one
			continue
		}
		report = report.and(one)
	}
	return out.Print(cmd, report, func(p *cli.Printer) {
		printTests(p, report, isVerbose)
		printWhole(p, all)
	}).Answer(report.OK)
}

func runTests(cmd *cobra.Command, s policysource.Sources) (testReport, error) {
	report := testReport{
		Schema: "pipeguard.dev/policy-test/v1", Tests: []testLine{}, Problems: []policy.Problem{},
		Invariants: invariants{Outcome: outcomeSkipped, Count: len(s.Modules.Checks) + len(s.Options.Checks)},
	}
	if len(s.Problems) > 0 {
		report.Problems = s.Problems
		return report, nil
	}
	results, refusal, err := try(cmd.Context(), s)
	if problems, ok := errors.AsType[*policy.ProblemsError](err); ok {
		report.Problems = problems.Problems
		return report, nil
	}
	if err != nil {
		return report, err
	}
	for _, r := range results {
		report.add(r)
	}
	switch {
	case report.Failed > 0:
	case refusal != nil:
		report.Invariants.Outcome, report.Invariants.Message = outcomeFailed, refusal.Error()
	default:
		report.Invariants.Outcome, report.OK = outcomePassed, true
	}
	return report, nil
}

// try runs the tests of the base and of what was added to it, each with what it knows of, and asks of both what an activation asks.
func try(ctx context.Context, s policysource.Sources) (results []policy.TestResult, refusal, err error) {
	added, refusal, err := policy.Try(ctx, s.Modules, s.Options)
	if err != nil || s.Modules.Base == nil {
		return added, refusal, err
	}
	base, baseRefusal, err := policy.Try(ctx, *s.Modules.Base, s.Options)
	return append(base, added...), cmp.Or(baseRefusal, refusal), err
}

// and joins the reports of two kinds of policies: a fault in either is a fault of both.
func (r testReport) and(other testReport) testReport {
	r.OK = r.OK && other.OK
	r.Passed, r.Failed, r.Skipped = r.Passed+other.Passed, r.Failed+other.Failed, r.Skipped+other.Skipped
	r.Tests, r.Problems = append(r.Tests, other.Tests...), append(r.Problems, other.Problems...)
	r.Invariants.Count += other.Invariants.Count
	if worse := []string{outcomePassed, outcomeSkipped, outcomeFailed}; slices.Index(worse, other.Invariants.Outcome) > slices.Index(worse, r.Invariants.Outcome) {
		r.Invariants.Outcome = other.Invariants.Outcome
	}
	r.Invariants.Message = strings.TrimSpace(r.Invariants.Message + "\n" + other.Invariants.Message)
	return r
}

func (r *testReport) add(t policy.TestResult) {
	line := testLine{Package: t.Package, Name: t.Name, File: t.File, Line: t.Line, Message: t.Message}
	switch {
	case t.Skipped:
		line.Outcome = outcomeSkipped
		r.Skipped++
	case t.Passed:
		line.Outcome = outcomePassed
		r.Passed++
	default:
		line.Outcome = outcomeFailed
		r.Failed++
	}
	r.Tests = append(r.Tests, line)
}

func printTests(p *cli.Printer, r testReport, isVerbose bool) {
	for _, problem := range r.Problems {
		p.Printf("%s\n", inert.Line(problem.String()))
	}
	if len(r.Problems) > 0 {
		p.Printf("not compiled, no tests run\n")
		return
	}
	for _, t := range r.Tests {
		if t.Outcome == outcomePassed && !isVerbose {
			continue
		}
		p.Printf("%s: %s:%d %s.%s\n", t.Outcome, inert.Line(t.File), t.Line, inert.Line(t.Package), inert.Line(t.Name))
		if t.Message != "" {
			p.Printf("    %s\n", inert.Line(t.Message))
		}
	}
	p.Printf("%d tests passed, %d failed, %d skipped\n", r.Passed, r.Failed, r.Skipped)
	p.Printf("%d invariants: %s\n", r.Invariants.Count, r.Invariants.Outcome)
	if r.Invariants.Message != "" {
		p.Printf("%s\n", inert.Text(r.Invariants.Message))
	}
}

// printWhole warns of a request policy that works but that nodes do not accept.
func printWhole(p *cli.Printer, all []policysource.Sources) {
	for _, s := range all {
		if s.IsWholeNode {
			p.Printf("note: this request policy defines its own decision; nodes take only modules that add to findings and advice of the built-in one\n")
		}
	}
}
