package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// acting is DefaultParameters with another action on guarded pipes.
func acting(a Action) Parameters {
	p := DefaultParameters()
	p.Action = a
	return p
}

// Where the parameters only record or warn, nothing is refused for a guarded pipe but the directory of all pipes, by which canaries show that the guard is on.
func TestTheActionOfTheParametersDecidesAboutPipesThatNoPolicyGoverns(t *testing.T) {
	for action, effect := range map[Action]Effect{ActionDeny: EffectDeny, ActionWarn: EffectWarn, ActionAudit: EffectAudit} {
		kept := &ledger{}
		r := newReviewer(t, acting(action), func(o *ReviewerOptions) { o.Audit = kept })
		for path, code := range map[string]string{csiPipe: "PG001", otherSpelling("csi-proxy-disk-v1"): "PG001", `\\.\pipe`: "PG003", `\\localhost\pipe\..\x`: "PG003"} {
			for _, kind := range holders() {
				res := r.Review(t.Context(), requestFor(t, asKind(t, kind, testPod(path)), nil))
				if res.Effect != effect || res.Code != code || res.Allowed != (effect != EffectDeny) {
					t.Errorf("%s, %s of %s: allowed %t, %s, %s", action, kind.Kind, path, res.Allowed, res.Effect, res.Code)
				}
			}
			kept.events = nil
			post(t, r, reviewBody(t, createRequest(t, testPod(path))))
			recorded := audit.EffectAllow
			if effect == EffectDeny {
				recorded = audit.EffectDeny
			}
			if len(kept.events) != 1 || kept.events[0].Decision.Effect != recorded || kept.events[0].Decision.Rule != code {
				t.Errorf("%s: the records of %s are %+v", action, path, kept.events)
			}
			if res := r.Review(t.Context(), requestFor(t, marshal(t, testVolume(path)), nil)); res.Effect != effect {
				t.Errorf("%s, a PersistentVolume of %s: %s, %s", action, path, res.Effect, res.Code)
			}
		}
		unmounted := testPod(csiPipe)
		unmounted.Spec.Containers[0].VolumeMounts = nil
		if res := r.Review(t.Context(), createRequest(t, unmounted)); res.Effect != effect || res.Code != "PG002" {
			t.Errorf("%s, declared: %s, %s", action, res.Effect, res.Code)
		}
		for _, refused := range [][]byte{marshal(t, testPod(NeverAllowedPath)), marshal(t, testVolume(NeverAllowedPath))} {
			if res := r.Review(t.Context(), requestFor(t, refused, nil)); res.Allowed || res.Code != "PG003" {
				t.Errorf("%s, the directory of all pipes: allowed %t, %s", action, res.Allowed, res.Code)
			}
		}
		if err := r.Canary(t.Context()); err != nil {
			t.Errorf("%s: canary: %v", action, err)
		}
	}
}

func TestTheActionWeakensNoPipePolicy(t *testing.T) {
	policies := governedBy()
	policies.Parameters = acting(ActionAudit)
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, policies, nil) })
	// What may lead to any pipe may lead to the one that the policy governs.
	for path, code := range map[string]string{csiPipe: "PG010", `\\.\pipe`: "PG003"} {
		if res := r.Review(t.Context(), createRequest(t, testPod(path))); res.Allowed || res.Code != code {
			t.Errorf("%s: allowed %t, %s", path, res.Allowed, res.Code)
		}
	}
	if err := r.Canary(t.Context()); err != nil {
		t.Errorf("canary: %v", err)
	}
}

func TestTheStrictestActionIsThatOfAllThatGuardPipes(t *testing.T) {
	host := PipePolicy{Action: ActionDeny} // without pipes, it guards none
	for want, p := range map[Action]Policies{
		ActionAudit: {Parameters: acting(ActionAudit), PipePolicies: map[string]PipePolicy{"host": host, "a": {Pipes: []string{"a"}, Action: ActionAudit}}},
		ActionWarn:  {Parameters: acting(ActionAudit), PipePolicies: map[string]PipePolicy{"a": {Pipes: []string{"a"}, Action: ActionWarn}}},
		ActionDeny:  {Parameters: acting(ActionWarn), PipePolicies: map[string]PipePolicy{"a": {Pipes: []string{"a"}}}},
	} {
		if got := p.StrictestAction(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	p := acting(ActionAudit)
	p.PipePolicies["a"] = PipePolicy{Pipes: []string{"a"}, Action: ActionDeny}
	if diff := cmp.Diff(ActionDeny, Policies{Parameters: p}.StrictestAction()); diff != "" {
		t.Errorf("with a policy of the parameters (-want +got):\n%s", diff)
	}
}

func TestParametersWithAnActionThatIsNotKnownAreNotTaken(t *testing.T) {
	for _, a := range []Action{"", ActionIgnore, "deny"} {
		if err := (Policies{Parameters: acting(a)}).Validate(); err == nil {
			t.Errorf("%q is taken", a)
		}
	}
}
