package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/test/pods"
)

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
	post(t, r, reviewBody(t, createRequest(t, pods.Plain(t))))
	if len(kept.events) != 0 {
		t.Fatalf("a canary, or an object with nothing to decide, left %d records", len(kept.events))
	}

	post(t, r, reviewBody(t, createRequest(t, testPod(csiPipe))))
	post(t, r, reviewBody(t, createRequest(t, pods.Driver(t))))
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
	post(t, r, reviewBody(t, requestFor(t, inTemplate(t, metav1.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, testPod(csiPipe)), nil)))
	post(t, r, reviewBody(t, requestFor(t, marshal(t, testVolume(csiPipe)), nil)))
	for i, want := range []struct{ who, what string }{
		{`{"ns":"team-a","sa":"builder"}`, `{"kind":"batch/v1 CronJob","namespace":"team-a","name":"demo"}`}, {`null`, `{"kind":"v1 PersistentVolume","name":"data"}`},
	} {
		e := kept.events[4+i]
		if got := string(marshal(t, e.Who.Pod)); got != want.who || string(e.What.Params) != want.what {
			t.Errorf("record of pod %s, %s; want %s, %s", got, e.What.Params, want.who, want.what)
		}
		if len(e.What.Targets) != 1 || e.What.Targets[0] != (audit.Target{Kind: "pipe", Value: csiPipe, Canonical: csiPipe}) {
			t.Errorf("targets %+v", e.What.Targets)
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
		"code=none effect=none": 1, "code=none effect=allow": 1, "code=PG001 effect=deny": 2, "code=PG001 effect=warn": 1, "code=PG999 effect=deny": 1,
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
		"an admission passes":                                {false, `\\.\pipe\printer`, true, ""},
		"an admission is refused where records are required": {true, `\\.\pipe\printer`, false, CodeFailure},
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
