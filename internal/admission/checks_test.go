package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/pipepath"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// policyOf is a policy with a passing test, that decides as body says.
func policyOf(body string) policy.Modules {
	return policy.Modules{Files: map[string]string{
		"decision.rego":      "package pipeguard.admission\n\n" + body,
		"decision_test.rego": "package pipeguard.admission_test\n\nimport data.pipeguard.admission\n\ntest_it if is_boolean(admission.decision.allowed)\n",
	}}
}

const (
	allowAll = `decision := {"allowed": true, "findings": []}`
	denyAll  = `decision := {"allowed": false, "findings": [{"code": "X1", "effect": "deny"}]}`
	// sloppy knows one spelling of one pipe and trusts everyone in kube-system.
	sloppy = `
findings contains {"code": "X1", "effect": "deny"} if {
	input.mounts[_].path == "\\\\.\\pipe\\csi-proxy-filesystem-v1"
	not input.namespace == "kube-system"
}

decision := {"allowed": count(findings) == 0, "findings": findings}
`
)

func TestChecksKeepPoliciesThatDoNotGuardFromBeingActivated(t *testing.T) {
	guard, err := DefaultParameters().Guard()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body string
		want []string // checks that fail
	}{
		"a policy that allows everything": {allowAll, []string{
			"a guarded pipe is refused where nobody is allowed", "without data a guarded pipe is refused",
			"with malformed data a guarded pipe is refused", "the same driver in another namespace is refused"}},
		"a policy that refuses everything": {denyAll, []string{"a driver in an allowed namespace is admitted"}},
		"a policy that compares one spelling": {sloppy, []string{
			"an evasive spelling of it is refused", "the directory of all pipes is refused even in an allowed namespace",
			"a guarded pipe that is declared and not mounted is refused", "without data a guarded pipe is refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := policy.New(policy.Options{Checks: Checks(guard)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = engine.Activate(t.Context(), policyOf(c.body).WithData(DefaultParameters().Data()))
			if err == nil {
				t.Fatal("it was activated")
			}
			for _, check := range c.want {
				if !strings.Contains(err.Error(), "built-in: "+check) {
					t.Errorf("the error does not name the check %q:\n%v", check, err)
				}
			}
		})
	}
}

func TestChecksHoldForOtherGuardedPipes(t *testing.T) {
	p := DefaultParameters()
	p.GuardedPipes = []string{"docker_engine", "rancher_*"}
	newEngine(t, p, nil) // fails the test if a check does not hold
}

func TestCanaryFailsUnlessARuleRefusesIt(t *testing.T) {
	unchecked := func(m policy.Modules) *policy.Engine {
		engine, err := policy.New(policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Files != nil {
			if _, err := engine.Activate(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		return engine
	}
	good := newEngine(t, DefaultParameters(), nil)
	for name, c := range map[string]struct {
		engine Engine
		want   string
	}{
		"no policy":       {unchecked(policy.Modules{}), ErrNoPolicy.Error()},
		"an open policy":  {unchecked(policyOf(allowAll)), "it was admitted"},
		"a broken engine": {failing{good, new(true)}, "refused without a decision"},
		"a sloppy policy": {unchecked(policyOf(sloppy)), "GLOBALROOT"},
		"the default":     {good, ""},
		"a strict policy": {unchecked(policyOf(denyAll)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = c.engine })
			err := r.Canary(t.Context())
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}

// swapping is an engine that sees the guarded pipes replaced while it decides, as when parameters are read again.
type swapping struct {
	*policy.Engine
	swap *func()
}

func (e swapping) DecideWith(ctx context.Context, s policy.Snapshot, input ast.Value) (policy.Decision, error) {
	(*e.swap)()
	return e.Engine.DecideWith(ctx, s, input)
}

func TestCanaryIsNotMisledByParametersThatChangeMeanwhile(t *testing.T) {
	other, err := pipepath.NewGuard("other-pipe")
	if err != nil {
		t.Fatal(err)
	}
	swap := func() {}
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Engine = swapping{newEngine(t, DefaultParameters(), nil), &swap}
	})
	swap = func() { r.SetGuard(other) } // the next canary is of a pipe that is guarded no longer
	if err := r.Canary(t.Context()); err != nil {
		t.Error(err)
	}
}

// ledger is an audit.Writer that remembers, and fails while err is set.
type ledger struct {
	events []audit.Event
	err    error
}

func (l *ledger) Append(_ context.Context, e *audit.Event) (uint64, error) {
	if l.err != nil {
		return 0, l.err
	}
	l.events = append(l.events, *e)
	return uint64(len(l.events)), nil
}

func TestEveryDecisionLeavesOneRecordAndACanaryNone(t *testing.T) {
	kept := &ledger{}
	reg := prometheus.NewRegistry()
	r := newReviewer(t, allowing(), func(o *ReviewerOptions) { o.Audit, o.Metrics = kept, NewMetrics(reg) })
	if err := r.Canary(t.Context()); err != nil {
		t.Fatal(err)
	}
	post(t, r, reviewBody(t, createRequest(t, plainPod(t))))
	if len(kept.events) != 0 {
		t.Fatalf("a canary, or an object with nothing to decide, left %d records", len(kept.events))
	}

	post(t, r, reviewBody(t, createRequest(t, testPod(csiPipe))))
	post(t, r, reviewBody(t, createRequest(t, driverPod(t))))
	post(t, r, reviewBody(t, updateRequest(t, admittedPod(), admittedPod())))
	post(t, r, []byte(envelopeWith(`"operation":"DELETE"`)))
	type line struct {
		effect                               audit.Effect
		reason, rule, result, code, verb, ns string
		targets                              int
	}
	want := []line{
		{"deny", "PG001", "PG001", "denied", "403", "CREATE", "team-a", 1},
		{"allow", "no finding", "", "ok", "200", "CREATE", "kube-system", 6},
		{"allow", "unchanged", "PG001", "ok", "200", "UPDATE", "team-a", 1},
		{"deny", "operation", "PG999", "rejected", "403", "DELETE", "", 0},
	}
	if len(kept.events) != len(want) {
		t.Fatalf("%d records, want %d", len(kept.events), len(want))
	}
	for i, e := range kept.events {
		got := line{e.Decision.Effect, e.Decision.Reason, e.Decision.Rule, e.Outcome.Result, e.Outcome.Code, e.What.Verb, e.Who.Pod.Namespace, len(e.What.Targets)}
		if got != want[i] {
			t.Errorf("record %d: %+v, want %+v", i, got, want[i])
		}
		if e.ID != "decision0" || e.Type != audit.TypeAdmission || e.Corr.AdmissionUID != "review-uid" || !e.Time.Equal(clock) {
			t.Errorf("record %d: %+v", i, e)
		}
	}
	first := kept.events[0]
	if first.Who.User.Name != "jane" || first.Who.Pod.ServiceAccount != "builder" || first.What.Targets[0] != (audit.Target{Kind: "pipe", Value: csiPipe, Canonical: csiPipe}) {
		t.Errorf("the record does not say who asked for what: %+v %+v", first.Who, first.What)
	}

	counted := map[string]float64{}
	for _, labels := range []string{"code=none effect=none", "code=none effect=allow", "code=PG001 effect=deny", "code=PG001 effect=warn", "code=PG999 effect=deny"} {
		counted[labels] = counter(t, reg, "pipeguard_admission_decisions_total", labels)
	}
	if diff := cmp.Diff(map[string]float64{
		"code=none effect=none": 1, "code=none effect=allow": 1, "code=PG001 effect=deny": 1, "code=PG001 effect=warn": 1, "code=PG999 effect=deny": 1,
	}, counted); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

// counter is the value of a counter with labels, given as "name=value name=value" in the order of names; 0 without one.
func counter(t *testing.T, from prometheus.Gatherer, name, labels string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var pairs []string
			for _, l := range m.GetLabel() {
				pairs = append(pairs, l.GetName()+"="+l.GetValue())
			}
			if f.GetName() == name && strings.Join(pairs, " ") == labels {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestACodeThatNoRuleDescribesIsCountedAsOther(t *testing.T) {
	engine := newEngine(t, DefaultParameters(), nil)
	snapshot, _ := engine.Active()
	reg := prometheus.NewRegistry()
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Metrics = NewMetrics(reg)
		o.Engine = faultyEngine{engine, func() (policy.Decision, error) {
			return policy.Decision{Revision: snapshot.Revision(), Findings: []policy.Finding{{Code: "MADE-UP-42", Effect: policy.EffectDeny}}}, nil
		}}
	})
	r.Review(t.Context(), createRequest(t, testPod(csiPipe)))
	if got := counter(t, reg, "pipeguard_admission_decisions_total", "code=other effect=deny"); got != 1 {
		t.Errorf("counted %v as other, want 1", got)
	}
}

func TestARecordThatCannotBeWrittenStopsAnAllowOnlyWhereItMust(t *testing.T) {
	broken := &ledger{err: errors.New("disk full")}
	for name, c := range map[string]struct {
		required bool
		path     string
		allowed  bool
		code     string
	}{
		"a refusal stays one":                                {false, csiPipe, false, "PG001"},
		"a refusal stays one where records are required":     {true, csiPipe, false, "PG001"},
		"an admission passes":                                {false, `\\.\pipe\docker_engine`, true, ""},
		"an admission is refused where records are required": {true, `\\.\pipe\docker_engine`, false, CodeFailure},
	} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
				o.Audit, o.AuditRequired, o.Metrics = broken, c.required, NewMetrics(reg)
			})
			res := r.Review(t.Context(), createRequest(t, testPod(c.path)))
			if res.Allowed != c.allowed || res.Code != c.code {
				t.Errorf("allowed %t, code %q; want %t, %q", res.Allowed, res.Code, c.allowed, c.code)
			}
			if got := counter(t, reg, "pipeguard_audit_write_failures_total", ""); got != 1 {
				t.Errorf("%v failures counted, want 1", got)
			}
		})
	}
}

func TestNewReviewerReportsEveryFault(t *testing.T) {
	_, err := NewReviewer(ReviewerOptions{Parameters: Parameters{GuardedPipes: []string{"a*b"}}})
	for _, want := range []string{"option Engine is missing", "option Parameters: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestSetGuardChangesWhatIsGuarded(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	req := createRequest(t, testPod(`\\.\pipe\docker_engine`))
	if res := r.Review(t.Context(), req); !res.Allowed {
		t.Fatal("refused before it is guarded")
	}
	guard, err := Parameters{GuardedPipes: []string{"docker_*"}}.Guard()
	if err != nil {
		t.Fatal(err)
	}
	r.SetGuard(guard)
	if res := r.Review(t.Context(), req); res.Allowed {
		t.Error("admitted although it is guarded now")
	}
}
