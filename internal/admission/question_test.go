package admission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/open-policy-agent/opa/v1/ast"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// reads are rules that read what the default policy does not.
var reads = map[string]string{
	"nothing more": "",
	"the time":     `findings contains {"code": "X001", "effect": "warn", "field": input.now} if input.now > "2026-03-04T05:06:08Z"`,
	"the labels":   `findings contains {"code": "X001", "effect": "warn"} if input.labels.app`,
	"the user":     `findings contains {"code": "X001", "effect": "audit"} if "devs" in input.user.groups`,
	"the object":   `findings contains {"code": "X001", "effect": "audit"} if input.object.spec.priority`,
	"everything":   `findings contains {"code": "X001", "effect": "audit"} if { some k, v in input; k == v }`,
}

// anew decides about values that are made, so that nothing is remembered.
type anew struct{ *policy.Engine }

func (e anew) DecideAbout(ctx context.Context, s policy.Snapshot, sender turns.Sender, q policy.Question) (policy.Decision, error) {
	return e.DecideWith(ctx, s, sender, q.Value(everyField))
}

// A review of which the decision is remembered is the same as one that is decided anew, whatever policies read, whatever of the object, the user or the time is another.
// PIPEGUARD_REVIEWS compares more of them.
func TestRememberedReviewsAreThoseThatAreDecidedAnew(t *testing.T) {
	reviews := 500
	if text := os.Getenv("PIPEGUARD_REVIEWS"); text != "" {
		var err error
		if reviews, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for name, rule := range reads {
		t.Run(name, func(t *testing.T) {
			var files map[string]string
			if rule != "" {
				files = map[string]string{"own.rego": "package pipeguard.admission\n\n# METADATA\n# title: X\n# custom:\n#   code: X001\n" + rule + "\n"}
			}
			engine := newPolicyEngine(t, overlapping(), files)
			now := clock
			at := func(o *ReviewerOptions) { o.Now = func() time.Time { return now } }
			quick := newReviewer(t, Parameters{}, at, func(o *ReviewerOptions) { o.Engine = engine })
			slow := newReviewer(t, Parameters{}, at, func(o *ReviewerOptions) { o.Engine = anew{engine} })
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not for secrets
			var raws [][]byte
			for range reviews {
				if len(raws) == 0 || r.IntN(3) == 0 {
					_, raw := randomObject(t, r)
					raws = append(raws, raw)
				}
				req, err := ObjectReview(raws[max(0, len(raws)-1-r.IntN(20))])
				if err != nil {
					t.Fatal(err)
				}
				req.UserInfo.Username, req.Name = fmt.Sprint("user-", r.IntN(3)), fmt.Sprint("name-", r.IntN(3))
				if r.IntN(3) == 0 {
					req.UserInfo.Groups = []string{"devs"}
				}
				if now = clock.Add(time.Duration(r.IntN(3)) * time.Second); r.IntN(4) == 0 {
					now = now.AddDate(0, 0, r.IntN(40))
				}
				want, got := slow.Review(t.Context(), req), quick.Review(t.Context(), req)
				if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Result{})); diff != "" {
					t.Fatalf("%s\n%s", req.Object.Raw, diff)
				}
			}
		})
	}
}

// What stands for an input is what its value has, field by field.
func TestAnInputIsWrittenAsItsValue(t *testing.T) {
	scope := testScope(t, overlapping())
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // not for secrets
		in, raw := randomInput(t, scope, r)
		object, err := objectValue(raw)
		if err != nil {
			t.Fatal(err)
		}
		q := inputQuestion{in, object}
		value, ok := q.Value(everyField).(ast.Object)
		if !ok {
			t.Fatal("the input is no object")
		}
		for _, key := range value.Keys() {
			name := string(key.Value.(ast.String))
			var got, want policy.Writer
			q.Write(&got, name)
			want.Value(value.Get(key).Value)
			if !got.Equal(&want) {
				t.Fatalf("seed %d: %s is not written as its value\n%v", seed, name, value.Get(key))
			}
		}
		var got policy.Writer
		if q.Write(&got, "other"); !got.Equal(&policy.Writer{}) {
			t.Fatal("a field is written that there is not")
		}
		some := q.Value(func(field string) bool { return field == "mounts" || field == "pod" })
		if want := ast.NewObject(item{ast.StringTerm("mounts"), value.Get(ast.StringTerm("mounts"))}, item{ast.StringTerm("pod"), value.Get(ast.StringTerm("pod"))}, item{keyObject, ast.NewTerm(object)}); some.Compare(want) != 0 {
			t.Fatalf("seed %d: %v", seed, some)
		}
	}
}

// The pods of a workload, and a pod that a controller tries to make again and again, are evaluated once by the default policy.
func TestThePodsOfAWorkloadAreEvaluatedOnce(t *testing.T) {
	for name, namespace := range map[string]string{"allowed": "kube-system", "denied": "shop"} {
		t.Run(name, func(t *testing.T) {
			engine := newEngine(t, allowing(), map[string]string{}) // of its own
			values := 0
			counting := countingEngine{engine, &values}
			r := newReviewer(t, allowing(), func(o *ReviewerOptions) { o.Engine = counting })
			pod := testPod(csiPipe)
			pod.Namespace, pod.Spec.ServiceAccountName = namespace, "csi-azuredisk-node-sa"
			for i := range 5 {
				pod.Name, pod.UID = fmt.Sprint("driver-", i), ""
				pod.CreationTimestamp = metav1.NewTime(clock.Add(time.Duration(i) * time.Hour))
				req := createRequest(t, pod)
				req.UserInfo.Username = fmt.Sprint("user-", i)
				r.o.Now = func() time.Time { return clock.Add(time.Duration(i) * time.Hour) }
				if res := r.Review(t.Context(), req); res.Allowed != (namespace == "kube-system") || res.DecisionID == "" {
					t.Fatalf("%+v", res)
				}
			}
			if values != 1 {
				t.Errorf("%d values were made", values)
			}
			pod.Spec.Containers[0].Image = "example.com/app:2"
			if r.Review(t.Context(), createRequest(t, pod)); values != 2 {
				t.Errorf("another image: %d values were made", values)
			}
		})
	}
}

// countingEngine counts the values that are made.
type countingEngine struct {
	*policy.Engine
	values *int
}

func (e countingEngine) DecideAbout(ctx context.Context, s policy.Snapshot, sender turns.Sender, q policy.Question) (policy.Decision, error) {
	return e.Engine.DecideAbout(ctx, s, sender, counted{q, e.values})
}

type counted struct {
	policy.Question
	values *int
}

func (c counted) Value(read func(string) bool) ast.Value {
	*c.values++
	return c.Question.Value(read)
}

// What is too long to be remembered is not gone through to its end: it takes no turn, and no time-out ends it.
func TestWritingEndsWhereAnInputIsTooLong(t *testing.T) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("written on: %v", p)
		}
	}()
	type entry struct {
		First  string `json:"a"`
		Second int    `json:"b"` // which cannot be written
	}
	var w policy.Writer
	write(&w, reflect.ValueOf([]entry{{First: strings.Repeat("x", 1<<20)}, {}}))
	if !w.IsOver() {
		t.Error("not over")
	}
}
