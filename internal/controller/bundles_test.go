package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// published is what a leader tells of bundles with the policies of an attempt.
func published(attempt, message string) *Bundles {
	return &Bundles{Attempt: attempt, IsPublished: true, Reason: "Published", Message: message}
}

func TestAStatusSaysWhatBecameOfTheBundles(t *testing.T) {
	active := attempted(nil)
	active.ActiveAttempt = "x"
	refused := attempted(compileError("policymodules/a/rule.rego"))
	refused.Attempted, refused.ActiveAttempt = "y", "x"
	before := []metav1.Condition{{
		Type: v1alpha1.ConditionBundlesPublished, Status: metav1.ConditionTrue, Reason: "Published", Message: "default at revision 6", ObservedGeneration: 2,
	}}
	for name, c := range map[string]struct {
		outcome Outcome
		bundles *Bundles
		before  []metav1.Condition
		want    string
	}{
		"they are published":                 {active, published("x", "default at revision 7"), nil, "BundlesPublished True Published: default at revision 7"},
		"none can be signed":                 {active, &Bundles{Attempt: "x", Reason: "KeyUnfit", Message: "pool default: no key"}, before, "BundlesPublished False KeyUnfit: pool default: no key"},
		"nothing was attempted":              {active, &Bundles{}, nil, "BundlesPublished Unknown Pending: bundles with it are being made"},
		"they are of the policies before":    {active, published("w", "default at revision 5"), nil, "BundlesPublished Unknown Pending: bundles with it are being made"},
		"a leader has only begun":            {active, &Bundles{}, before, "BundlesPublished True Published: default at revision 6"},
		"what is refused is in no bundle":    {refused, published("x", "default at revision 7"), before, "BundlesPublished False NotActive: it is not active: see Compiled and TestsPassed"},
		"what came before is still in them":  {withActive(refused), published("x", "default at revision 7"), nil, "BundlesPublished True Published: default at revision 7"},
		"the one before was of a generation": {active, &Bundles{}, []metav1.Condition{{Type: v1alpha1.ConditionBundlesPublished, Status: metav1.ConditionTrue, ObservedGeneration: 1}}, "BundlesPublished Unknown Pending: bundles with it are being made"},
	} {
		t.Run(name, func(t *testing.T) {
			p := statusInputOf(c.outcome, three)
			p.bundles = c.bundles
			o := pipePolicy("p", 2)
			o.Status.Conditions = c.before
			got, ok := p.pipePolicyStatus(&o, nil, nil)
			if shown := show(got.Conditions); !ok || len(shown) != 6 || shown[4] != c.want || shown[5] != "ExpressedOnNodes True Expressed: nodes permit what it says" {
				t.Errorf("conditions %q, want the last but one to be %q", shown, c.want)
			}
			if ready := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason == "KeyUnfit" {
				t.Errorf("admission's condition is %+v", ready)
			}
		})
	}
}

// withActive is an outcome whose newest attempt was refused, after one with the same generations.
func withActive(o Outcome) Outcome {
	o.Active = o.Generations
	return o
}

func TestWhereNoBundlesAreMadeNoStatusSpeaksOfThem(t *testing.T) {
	l := lead()
	l.server.pipe.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBundlesPublished, Status: metav1.ConditionTrue}}
	l.reconcile(t)
	if c := meta.FindStatusCondition(l.server.pipe.Status.Conditions, v1alpha1.ConditionBundlesPublished); c != nil {
		t.Errorf("condition %+v", c)
	}
}

func TestABundleIsWrittenIntoTheStatusOnce(t *testing.T) {
	l := lead()
	l.outcome.ActiveAttempt = "x"
	bundles := Bundles{}
	l.bundles = func() Bundles { return bundles }
	steps := []struct {
		name    string
		bundles Bundles
		patches int
	}{
		{"not attempted yet", Bundles{}, 2}, // of the PipePolicy and of the PolicyModule
		{"published", *published("x", "default at revision 7"), 3},
		{"again", *published("x", "default at revision 7"), 3},
		{"another leader has begun", Bundles{}, 3},
		{"it has found them", *published("x", "default at revision 7"), 3},
		{"renewed", *published("x", "default at revision 8"), 4},
		{"not any more", Bundles{Attempt: "x", Reason: "StoreFailed", Message: "m"}, 5},
	}
	for _, s := range steps {
		bundles = s.bundles
		for range 3 {
			l.at = l.at.Add(time.Minute)
			l.reconcile(t)
		}
		if n := len(l.server.patches); n != s.patches {
			t.Errorf("%s: %d patches, want %d", s.name, n, s.patches)
		}
	}
	c := meta.FindStatusCondition(l.server.module.Status.Conditions, v1alpha1.ConditionBundlesPublished)
	if c != nil {
		t.Errorf("a PolicyModule is for admission alone, and has %+v", c)
	}
}

func TestWhatIsActivatedIsHandedOutWithItsRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		r := run(t, objects)
		objects.set([]v1alpha1.PipePolicy{pipePolicy("q", 1), pipePolicy("p", 1)}, nil)
		calm()
		good, ok := r.Activated()
		active, _ := r.engine.Active()
		o := r.latest(t)
		if !ok || good.Revision != active.Revision() || good.Attempt != o.Attempted || good.Attempt != o.ActiveAttempt {
			t.Errorf("activated %+v, outcome %+v, revision %s", good, o, active.Revision())
		}
		names := func(a Activated) (out []string) {
			for _, p := range a.PipePolicies {
				out = append(out, p.Name)
			}
			return out
		}
		if diff := cmp.Diff([]string{"p", "q"}, names(good)); diff != "" {
			t.Error(diff)
		}

		// What is refused is not for nodes either.
		objects.set([]v1alpha1.PipePolicy{pipePolicy("r", 1)}, []v1alpha1.PolicyModule{policyModule("bad", 1, "package x\n\ny := z\n")})
		calm()
		after, _ := r.Activated()
		if o := r.latest(t); o.Err == nil || o.Attempted == good.Attempt || o.ActiveAttempt != good.Attempt {
			t.Errorf("outcome %+v", o)
		}
		if diff := cmp.Diff(good, after); diff != "" {
			t.Error(diff)
		}
		r.stop(t)
	})
}

// What parameters say of nodes alone changes no decision at admission, and is handed out all the same.
func TestParametersAreHandedOutAsLongAsTheyDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, newMemory())
		of := func(method string) *admission.Parameters {
			p := admission.DefaultParameters()
			p.PipePolicies = map[string]admission.PipePolicy{"p": {Subjects: []access.Subject{{Permission: access.Permission{Methods: []string{method}}}}}}
			return &p
		}
		var before Activated
		for i, method := range []string{"Mkdir", "Rmdir"} {
			r.params.Store(of(method))
			r.Changed()
			calm()
			got, _ := r.Activated()
			if diff := cmp.Diff(*of(method), got.Parameters); diff != "" || got.Attempt == before.Attempt || len(r.told) != i+2 {
				t.Errorf("%s: attempt %s after %s, %d told\n%s", method, got.Attempt, before.Attempt, len(r.told), diff)
			}
			before = got
		}

		r.noBase.Store(true) // as of a file with a fault
		r.Changed()
		calm()
		if got, _ := r.Activated(); r.latest(t).Err == nil || !cmp.Equal(before, got) {
			t.Errorf("after an attempt that failed: %+v", got)
		}
		r.stop(t)
	})
}

func TestNothingIsHandedOutBeforeAnythingDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		objects.modules = []v1alpha1.PolicyModule{policyModule("bad", 1, "package x\n\ny := z\n")}
		r := run(t, objects)
		if got, ok := r.Activated(); ok {
			t.Errorf("activated %+v", got)
		}
		r.stop(t)
	})
}

func TestAStatusSaysWhatHoldsAtAdmissionAlone(t *testing.T) {
	active := attempted(nil)
	active.ActiveAttempt = "x"
	p := statusInputOf(active, three)
	p.bundles = published("x", "default at revision 7")
	o := pipePolicy("p", 2)
	o.Spec.Pipes = []v1alpha1.PipePattern{"CSI-Proxy-s*"}
	o.Spec.Node.Methods = []string{"StartService"}
	o.Spec.Subjects = []v1alpha1.Subject{{Name: "s", Namespace: "n"}}
	got, _ := p.pipePolicyStatus(&o, nil, nil)
	c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionExpressedOnNodes)
	const want = "a pattern covers csi-proxy-system-v1alpha1 without spelling out the group system: they are guarded, and no node permits anything there; write csi-proxy-system-*\n" +
		"no pipe that it opens has the method StartService: it is one of csi-proxy-system-*"
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != ReasonInPart || c.Message != want {
		t.Errorf("%+v", c)
	}
}
