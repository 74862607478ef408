package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/admission/intake"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// slowEngine takes long for a decision, and makes one at a time.
type slowEngine struct {
	*policy.Engine
	slots *turns.Turns
}

func (e slowEngine) DecideAbout(ctx context.Context, s policy.Snapshot, sender turns.Sender, q policy.Question) (policy.Decision, error) {
	done, err := e.slots.Take(ctx, sender)
	if err != nil {
		return policy.Decision{}, &policy.Error{Reason: policy.ReasonOverload, Err: err}
	}
	defer done()
	time.Sleep(75 * time.Millisecond)
	return e.Engine.DecideAbout(ctx, s, sender, q)
}

func newSlowReviewer(t *testing.T) *Reviewer {
	t.Helper()
	return newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Engine = slowEngine{newEngine(t, DefaultParameters(), nil), turns.New(1, 4096, time.Minute)}
	})
}

// sentBy is a review that a user in a namespace asked for.
func sentBy(body []byte, user, namespace string) []byte {
	of := fmt.Sprintf(`"namespace":%q,"userInfo":{"username":%q}`, namespace, user)
	return []byte(strings.Replace(string(body), `"namespace":"team-a"`, of, 1))
}

// verdictOf says whether a review that is over was judged, or refused because there are too many of its tenant.
func verdictOf(t *testing.T, a *asked) (judged bool) {
	t.Helper()
	switch codes, message := a.says(t); {
	case codes == "PG001":
		return true
	case codes == CodeFailure && strings.Contains(message, "("+ReasonOverload+")") && strings.Contains(message, errNoPlace.Error()):
		return false
	default:
		t.Fatalf("refused with %s: %s", codes, message)
		return false
	}
}

// An API server sends the reviews of all tenants. Those of one tenant wait in all places that it may have, light ones and heavy ones, and more of it come all
// the time.
func TestSlowReviewsOfOneTenantLeavePlacesForOthersOfTheSameAddress(t *testing.T) {
	light := []byte(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](1))))
	heavy := []byte(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](100))))
	for name, flood := range map[string][][]byte{
		"light":           {light},
		"heavy":           {heavy},
		"light and heavy": {light, light, heavy},
	} {
		r := newSlowReviewer(t)
		synctest.Test(t, func(t *testing.T) {
			r.desk = intake.New(intake.Limits{Places: 36, PlacesPerAddress: 32})
			r.turns = turns.NewGroups(1, 64, time.Minute)
			var many []*asked
			send := func(n int) {
				for range n {
					many = append(many, ask(t, r, "10.0.0.1", sentBy(flood[len(many)%len(flood)], "eve", fmt.Sprint("evil-", len(many)))))
				}
			}
			send(60)
			for i, c := range []struct {
				body  []byte
				waits int // a heavy one waits for the heavy one before it, which waits behind light ones of its tenant
			}{{light, 2}, {heavy, 16}, {light, 2}, {light, 2}} {
				other := ask(t, r, "10.0.0.1", sentBy(c.body, "bob", "shop"))
				for range c.waits {
					later(250 * time.Millisecond)
					send(3)
				}
				if !other.over || !verdictOf(t, other) {
					t.Errorf("%s: review %d of another tenant was not judged", name, i)
				}
			}
			later(time.Minute)
			judged := 0
			for _, a := range many {
				if !a.over {
					t.Fatalf("%s: a review has no answer", name)
				}
				if verdictOf(t, a) {
					judged++
				}
			}
			if judged < 29 || judged > len(many)-30 {
				t.Errorf("%s: %d of %d of the many were judged", name, judged, len(many))
			}
		})
		if got := r.desk.String(); got != "0 unread with 0 bytes, 0 judged, 0 bytes in all" {
			t.Error(got)
		}
	}
}

// A controller that makes many pods of one namespace at once is alone, as a rule.
func TestALoneTenantIsRefusedNoneThatMayWait(t *testing.T) {
	light := []byte(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](1))))
	r := newSlowReviewer(t)
	synctest.Test(t, func(t *testing.T) {
		const most = 240
		var all []*asked
		for range most {
			all = append(all, ask(t, r, "10.0.0.1", sentBy(light, "system:serviceaccount:kube-system:replicaset-controller", "shop")))
		}
		if more := ask(t, r, "10.0.0.1", sentBy(light, "eve", "shop")); !more.over || verdictOf(t, more) {
			t.Error("one that is too many was not refused at once")
		}
		later(time.Minute)
		for i, a := range all {
			if !a.over || !verdictOf(t, a) {
				t.Errorf("review %d was not judged", i)
			}
		}
	})
}

// What needs no evaluation waits for nothing, and is not refused for those of its tenant that wait.
func TestAReviewThatNeedsNoEvaluationIsNotRefused(t *testing.T) {
	light := []byte(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](1))))
	r := newSlowReviewer(t)
	synctest.Test(t, func(t *testing.T) {
		for range 250 {
			ask(t, r, "10.0.0.1", sentBy(light, "eve", "evil"))
		}
		a := ask(t, r, "10.0.0.1", sentBy([]byte(podReview(nestedSpec(podKind, "", ""))), "eve", "evil"))
		if !a.over || a.w.Code != 200 || !strings.Contains(a.w.Body.String(), `"allowed":true`) {
			t.Errorf("over %t, status %d: %s", a.over, a.w.Code, a.w.Body)
		}
		later(time.Minute)
	})
}

func TestAReviewThatHoldsNoPlaceMayStay(t *testing.T) {
	if !mayStay(t.Context(), turns.Sender{"user eve"}) {
		t.Error("it may not")
	}
}

// A tenant fills pods with megabytes, hundreds at once. Those that wait hold none of them, so that reviews of others find memory, large ones as well.
func TestLargeReviewsOfOneTenantHoldUpNoOtherOfTheSameAddress(t *testing.T) {
	sized := func(bytes int) []byte {
		padding := fmt.Sprintf(`,"padding":%q`, strings.Repeat("x", bytes))
		return []byte(podReview(nestedSpec(podKind, "", bulky["mounts of a pipe"](1)+padding)))
	}
	large, light := sized(2<<20), sized(0)
	r := newSlowReviewer(t)
	synctest.Test(t, func(t *testing.T) {
		var many []*asked
		for range 40 { // 80 MiB, of 64 that bodies may hold
			many = append(many, ask(t, r, "10.0.0.1", sentBy(large, "eve", "evil")))
		}
		others := []*asked{ask(t, r, "10.0.0.1", sentBy(large, "bob", "shop")), ask(t, r, "10.0.0.1", sentBy(light, "bob", "shop"))}
		later(time.Second)
		for i, a := range others {
			if !a.over || !verdictOf(t, a) {
				t.Errorf("review %d of another tenant was not judged", i)
			}
		}
		later(time.Minute)
		judged := 0
		for _, a := range many {
			codes, message := a.says(t)
			switch {
			case codes == "PG001":
				judged++
			case codes != CodeFailure || !strings.Contains(message, errNoTurn.Error()):
				t.Errorf("refused with %s: %s", codes, message)
			}
		}
		if judged < 20 || judged == len(many) { // one is judged in 75 ms, and they wait for two seconds
			t.Errorf("%d of %d of the many were judged", judged, len(many))
		}
	})
	if got := r.desk.String(); got != "0 unread with 0 bytes, 0 judged, 0 bytes in all" {
		t.Error(got)
	}
}

func TestATenantIsNamedBeforeTheObjects(t *testing.T) {
	body := sentBy([]byte(podReview(`{"kind":"Pod","padding":"`+strings.Repeat("x", 1000)+`"}`)), "eve", "evil")
	want := turns.Sender{"namespace evil", "user eve"}
	for _, cut := range []int{len(body), len(body) - 500} {
		if got := tenantOf(body[:cut]); !slices.Equal(got, want) {
			t.Errorf("%d of %d bytes: %q, want %q", cut, len(body), got, want)
		}
	}
	for _, unnamed := range []string{"", "x", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","object":{},"namespace":"evil"}}`} {
		if got, want := tenantOf([]byte(unnamed)), senderOf("", ""); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", unnamed, got, want)
		}
	}
}
