package admission

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/turns"
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
	// podsOnly guards pods well and knows of nothing else.
	podsOnly = `
import data.pipeguard.parameters

findings contains {"code": "X1", "effect": "deny"} if {
	some m in array.concat(input.mounts, input.unmounted)
	m.guarded
	not permitted(m)
}

permitted(m) if {
	not m.neverAllowed
	parameters.allowedNamespaces[input.namespace]
}

decision := {"allowed": count(findings) == 0, "findings": findings}
`
	denyAll = `decision := {"allowed": false, "findings": [{"code": "X1", "effect": "deny"}]}`
	// subjectsByNamespace asks a subject for its namespace and nothing else.
	subjectsByNamespace = podsOnly + `
permitted(m) if {
	m.policies != []
	input.namespace == "kube-system"
}

findings contains {"code": "X1", "effect": "deny"} if input.persistentVolumes[_].guarded
`
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
	for name, c := range map[string]struct {
		body string
		want []string // checks that fail
	}{
		"a policy that allows everything": {allowAll, []string{
			"a guarded pipe is refused where nobody is allowed", "without data a guarded pipe is refused",
			"with malformed data a guarded pipe is refused", "the same driver in another namespace is refused"}},
		"a policy that refuses everything": {denyAll, []string{"a driver in an allowed namespace is admitted"}},
		"a policy that knows of pods and allowed namespaces only": {podsOnly, []string{
			"a PersistentVolume that leads to it is refused", "a PersistentVolume that leads to a guarded pipe is refused",
			"the subject of a PipePolicy is admitted", "in a namespace that only the parameters allow it is refused",
			"a PersistentVolume is refused although a PipePolicy has subjects"}},
		"a policy that permits subjects whatever else": {subjectsByNamespace, []string{
			"another container beside it is refused", "a subject whose permission has ended is refused"}},
		"a policy that compares one spelling": {sloppy, []string{
			"an evasive spelling of it is refused", "the directory of all pipes is refused even in an allowed namespace",
			"a guarded pipe that is declared and not mounted is refused", "without data a guarded pipe is refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newIdleEngine(t).Activate(t.Context(), bound(t, Policies{Parameters: DefaultParameters()}, policyOf(c.body)))
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
		engine := newIdleEngine(t)
		if m.Files != nil {
			m = bound(t, Policies{Parameters: DefaultParameters()}, m)
			m.Checks = nil
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

// swapping is an engine whose policies are replaced while it decides, as when parameters are read again.
type swapping struct {
	*policy.Engine
	swap func()
}

func (e swapping) DecideAbout(ctx context.Context, s policy.Snapshot, sender turns.Sender, q policy.Question) (policy.Decision, error) {
	e.swap()
	return e.Engine.DecideAbout(ctx, s, sender, q)
}

func TestCanaryIsNotMisledByPoliciesThatChangeMeanwhile(t *testing.T) {
	engine := newEngine(t, DefaultParameters(), map[string]string{})
	other := DefaultParameters()
	other.GuardedPipes = []string{"other-pipe"}
	swap := sync.OnceFunc(func() { // the next canary is of a pipe that is guarded no longer
		if _, err := engine.Activate(t.Context(), bound(t, Policies{Parameters: other}, fewTests(t))); err != nil {
			t.Error(err)
		}
	})
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = swapping{engine, swap} })
	if err := r.Canary(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNewReviewerNeedsAnEngine(t *testing.T) {
	if _, err := NewReviewer(ReviewerOptions{}); err == nil || !strings.Contains(err.Error(), "option Engine is missing") {
		t.Errorf("error %v", err)
	}
}

func TestGuardedPipesComeWithThePolicies(t *testing.T) {
	engine := newEngine(t, DefaultParameters(), map[string]string{})
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = engine })
	req := createRequest(t, testPod(`\\.\pipe\printer`))
	if res := r.Review(t.Context(), req); !res.Allowed {
		t.Fatal("refused before it is guarded")
	}
	p := DefaultParameters()
	p.GuardedPipes = []string{"print*"}
	if _, err := engine.Activate(t.Context(), bound(t, Policies{Parameters: p}, fewTests(t))); err != nil {
		t.Fatal(err)
	}
	if res := r.Review(t.Context(), req); res.Allowed {
		t.Error("admitted although it is guarded now")
	}
}
