package floor

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/pipeguard/pipeguard/internal/admission"
	product "github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
)

// chunk is how many objects are judged by one set of policies.
const chunk = 2000

// objects is how many are generated: PIPEGUARD_FLOOR_OBJECTS, or a part that is quick.
func objects(t testing.TB) int {
	text := os.Getenv("PIPEGUARD_FLOOR_OBJECTS")
	if text == "" {
		return 10 * chunk
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < chunk {
		t.Fatalf("PIPEGUARD_FLOOR_OBJECTS=%q: want a number of at least %d", text, chunk)
	}
	return n
}

// first is the number of the first chunk: PIPEGUARD_FLOOR_FIRST, or 0. The same chunk is always of the same objects.
func first(t testing.TB) int {
	n, err := strconv.Atoi(os.Getenv("PIPEGUARD_FLOOR_FIRST"))
	if err != nil && os.Getenv("PIPEGUARD_FLOOR_FIRST") != "" {
		t.Fatal(err)
	}
	return n
}

// reviewer is the webhook with policies, at the time that the generator knows.
func reviewer(t testing.TB, p admission.Policies) *admission.Reviewer {
	t.Helper()
	files, err := policy.LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	base, err := admission.Policies{Parameters: p.Parameters}.Bind(policy.Modules{Files: files.Files})
	if err != nil {
		t.Fatal(err)
	}
	modules, err := p.Bind(policy.Modules{Files: files.WithoutTests()})
	if err != nil {
		t.Fatal(err)
	}
	modules.Base = &base // as package policyset puts them together
	engine, err := policy.New(policy.Options{Timeout: time.Minute, BaseTested: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Activate(t.Context(), modules); err != nil {
		t.Fatal(err)
	}
	r, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// review is the request as the API server would send it to the webhook.
func (r *request) review(t testing.TB) *admissionv1.AdmissionRequest {
	t.Helper()
	raw := func(o runtime.Object) (out runtime.RawExtension) {
		if o == nil {
			return out
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	return &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind(r.kind), Resource: metav1.GroupVersionResource(r.kind.GroupVersion().WithResource(r.resource)), SubResource: r.sub,
		Name: "x", Namespace: r.namespace, Operation: admissionv1.Operation(r.operation), UserInfo: authenticationv1.UserInfo{Username: r.user.Name, Groups: r.user.Groups},
		Object: raw(r.object), OldObject: raw(r.before),
	}
}

// tally counts verdicts.
type tally struct {
	mu                                   sync.Mutex
	all, both, neither, stricter, failed int
	dearest, conditions                  int64
	kinds                                map[schema.GroupVersionKind]int
	reasons                              map[string]int
}

func TestTheFloorAdmitsNothingThatTheWebhookRefuses(t *testing.T) {
	total, from := objects(t), first(t)
	sum := &tally{kinds: map[schema.GroupVersionKind]int{}, reasons: map[string]int{}}
	t.Run("chunks", func(t *testing.T) {
		for i := range total / chunk {
			t.Run(strconv.Itoa(from+i), func(t *testing.T) {
				t.Parallel()
				compare(t, uint64(from+i), sum)
			})
		}
	})
	t.Logf("%d objects: both admit %d, both refuse %d, the floor alone refuses %d, %d by an expression that failed; the dearest cost %d of %d, and %d of %d for conditions\n%v",
		sum.all, sum.both, sum.neither, sum.stricter, sum.failed, sum.dearest, celconfig.RuntimeCELCostBudget, sum.conditions, celconfig.RuntimeCELCostBudgetMatchConditions, sum.reasons)
	if sum.both < sum.all/20 || sum.neither < sum.all/20 {
		t.Error("the objects say little")
	}
	if sum.dearest > celconfig.RuntimeCELCostBudget/2 || sum.conditions > celconfig.RuntimeCELCostBudgetMatchConditions/2 {
		t.Error("the floor takes more than half of its budget")
	}
	if sum.failed > 0 {
		t.Error("expressions failed")
	}
}

func compare(t *testing.T, seed uint64, sum *tally) {
	g := newGenerator(t, seed)
	p := g.policies()
	made, err := product.New(product.Options{Name: "floor", Policies: p})
	if err != nil {
		t.Fatal(err)
	}
	floor, webhook := newJudge(t, made), reviewer(t, p)
	for range chunk {
		r := g.request()
		v := floor.ask(t, r)
		res := webhook.Review(admission.WithoutTrace(t.Context()), r.review(t))
		if v.allowed && !res.Allowed {
			text, _ := json.MarshalIndent(r.object, "", " ")
			before, _ := json.Marshal(r.before)
			parameters, _ := json.MarshalIndent(p, "", " ")
			t.Fatalf("LAXER: the webhook refuses %s %s/%s (%s %v): %s\n%s\nbefore: %s\npolicies: %s", r.operation, r.kind.Kind, r.sub, r.user.Name, res.Codes, res.Message, text, before, parameters)
		}
		sum.add(t, r, &v, res.Allowed)
	}
}

func (s *tally) add(t *testing.T, r *request, v *verdict, allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	s.kinds[r.kind]++
	s.dearest, s.conditions = max(s.dearest, v.cost), max(s.conditions, v.conditions)
	switch {
	case v.failed:
		if s.failed++; s.failed < 4 {
			text, _ := json.Marshal(r.object)
			t.Errorf("an expression failed: %v\n%s", v.messages, text)
		}
	case v.allowed && allowed:
		s.both++
	case !v.allowed && !allowed:
		s.neither++
	case !v.allowed:
		s.stricter++
		codes, _, _ := strings.Cut(strings.TrimPrefix(v.messages[0], "Pipeguard's floor refuses it. "), ":")
		s.reasons[codes]++
		if os.Getenv("PIPEGUARD_FLOOR_STRICTER") == codes && s.reasons[codes] < 15 {
			text, _ := json.Marshal(r.object)
			fmt.Println("STRICTER", codes, string(text))
		}
	}
}

// Where the parameters and all PipePolicies only record, the floor refuses what the webhook still refuses, and nothing else.
func TestAFloorOfParametersThatOnlyRecordRefusesNoMore(t *testing.T) {
	g := newGenerator(t, 1)
	for _, hostProcess := range []admission.Action{admission.ActionAudit, admission.ActionIgnore} {
		p := admission.Policies{Parameters: admission.DefaultParameters(), PipePolicies: map[string]admission.PipePolicy{
			"disks": {Pipes: []string{"csi-proxy-disk-v1"}, Action: admission.ActionAudit},
		}}
		p.Parameters.Action, p.Parameters.HostProcess = admission.ActionAudit, hostProcess
		made, err := product.New(product.Options{Name: "floor", Policies: p})
		if err != nil {
			t.Fatal(err)
		}
		floor, webhook := newJudge(t, made), reviewer(t, p)
		refused := 0
		for range chunk {
			r := g.request()
			v := floor.ask(t, r)
			if res := webhook.Review(admission.WithoutTrace(t.Context()), r.review(t)); v.allowed != res.Allowed {
				text, _ := json.Marshal(r.object)
				t.Fatalf("the floor: %t %v, the webhook: %t %s\n%s", v.allowed, v.messages, res.Allowed, res.Message, text)
			}
			if !v.allowed {
				refused++
			}
		}
		if refused == 0 {
			t.Error("nothing was refused: no object had the directory of all pipes")
		}
	}
}
