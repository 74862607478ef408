package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// statusServer keeps one PipePolicy and one PolicyModule, and takes patches of their statuses.
type statusServer struct {
	client.Client
	pipe    *v1alpha1.PipePolicy
	module  *v1alpha1.PolicyModule
	patches []string
	fail    error
}

func (s *statusServer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch to := o.(type) {
	case *v1alpha1.PipePolicy:
		if s.pipe != nil && s.pipe.Name == key.Name {
			s.pipe.DeepCopyInto(to)
			return nil
		}
	case *v1alpha1.PolicyModule:
		if s.module != nil && s.module.Name == key.Name {
			s.module.DeepCopyInto(to)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *statusServer) Status() client.SubResourceWriter { return statusPatcher{server: s} }

type statusPatcher struct {
	client.SubResourceWriter
	server *statusServer
}

func (p statusPatcher) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	s := p.server
	if s.fail != nil {
		return s.fail
	}
	text, err := patch.Data(o)
	if err != nil {
		return err
	}
	s.patches = append(s.patches, string(text))
	version := fmt.Sprint(len(s.patches))
	o.SetResourceVersion(version)
	switch to := o.(type) {
	case *v1alpha1.PipePolicy:
		s.pipe.Status, s.pipe.ResourceVersion = *to.Status.DeepCopy(), version
	case *v1alpha1.PolicyModule:
		s.module.Status, s.module.ResourceVersion = *to.Status.DeepCopy(), version
	}
	return nil
}

// heard keeps Events.
type heard struct{ events []string }

func (h *heard) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	about := ""
	if r, ok := regarding.(*corev1.ObjectReference); ok {
		about = r.Kind + "/" + r.Name + r.FieldPath
	}
	h.events = append(h.events, fmt.Sprintf("%s %s %s", about, kind, reason))
	if text := fmt.Sprintf(note, args...); len(text) == 0 || len(text) > 1024 {
		h.events = append(h.events, fmt.Sprintf("a note of %d bytes", len(text)))
	}
}

func (h *heard) taken() []string {
	out := h.events
	h.events = nil
	return out
}

// leading is a writer and what it works with.
type leading struct {
	*writer
	server   *statusServer
	heard    *heard
	outcome  Outcome
	replicas ReplicaCount
	at       time.Time
}

func lead() *leading {
	l := &leading{server: &statusServer{}, heard: &heard{}, outcome: attempted(nil), replicas: three, at: noon}
	now := func() time.Time { return l.at }
	l.writer = &writer{
		client: l.server, recorder: l.heard, metrics: NewMetrics(nil, now), log: zap.NewNop(), now: now, recalls: map[string]reportedEvents{},
		outcome:    func() (Outcome, bool) { return l.outcome, l.outcome.Attempted != "" },
		count:      func(context.Context) (ReplicaCount, error) { return l.replicas, nil },
		violations: func(string) (int32, bool) { return 2, true },
		otherModes: func(string) (map[admission.OtherMode]int32, bool) { return nil, true },
	}
	p, m := pipePolicy("p", 2, lasting("l"), ending("s", 10*day)), policyModule("a", 2, goodRego)
	p.ResourceVersion, m.ResourceVersion = "0", "0"
	l.server.pipe, l.server.module = &p, &m
	return l
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func (l *leading) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := l.pipePolicies(t.Context(), request("p"))
	if err == nil {
		_, err = l.policyModules(t.Context(), request("a"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func TestAStatusIsWrittenWhenItChangesAndOnlyThen(t *testing.T) {
	l := lead()
	if wait := l.reconcile(t); wait != 3*day {
		t.Errorf("it comes back after %s", wait)
	}
	want := []string{"PipePolicy/p Normal Activated", "PipePolicy/p Normal Published", "PolicyModule/a Normal Activated", "PolicyModule/a Normal Published"}
	if diff := cmp.Diff(want, l.heard.taken()); diff != "" {
		t.Error(diff)
	}
	for range 5 {
		l.at = l.at.Add(time.Hour)
		l.reconcile(t)
	}
	if n := len(l.server.patches); n != 2 {
		t.Errorf("%d patches", n)
	}
	l.replicas = ReplicaCount{Live: 4, Current: 3, Behind: []string{"w-4"}} // only Leases changed
	l.reconcile(t)
	if n := len(l.server.patches); n != 4 || l.server.pipe.Status.Replicas.Summary != "3/4" || l.server.module.Status.Replicas.Summary != "3/4" {
		t.Errorf("%d patches, statuses %+v %+v", n, l.server.pipe.Status, l.server.module.Status)
	}
	if got := l.heard.taken(); got != nil {
		t.Errorf("Events %q", got)
	}
}

func TestWhatIsSaidOfNodesStays(t *testing.T) {
	l := lead()
	nodes := &v1alpha1.NodeCounts{Total: 3, Current: 2, Behind: 1, Summary: "2/3"}
	l.server.pipe.Status.Nodes = nodes
	l.reconcile(t)
	if diff := cmp.Diff(nodes, l.server.pipe.Status.Nodes); diff != "" || len(l.server.patches) != 2 {
		t.Errorf("%d patches\n%s", len(l.server.patches), diff)
	}
}

func TestASubjectsEndIsToldAndWritten(t *testing.T) {
	l := lead()
	wait := l.reconcile(t)
	l.heard.taken()
	for _, want := range []string{"SubjectExpiring", "SubjectExpired"} {
		l.at = l.at.Add(wait)
		wait = l.reconcile(t)
		if diff := cmp.Diff([]string{"PipePolicy/pspec.subjects{s} Warning " + want}, l.heard.taken()); diff != "" {
			t.Error(diff)
		}
		l.recalls = map[string]reportedEvents{} // another leader
		l.reconcile(t)
		if got := l.heard.taken(); got != nil {
			t.Errorf("Events %q", got)
		}
	}
	if got := l.server.pipe.Status.Subjects; wait != 0 || got != (v1alpha1.SubjectCounts{Open: 1, Expired: 1}) {
		t.Errorf("it waits %s more, subjects %+v", wait, got)
	}
}

func TestThePermissionOfARefusedPolicyDoesNotEnd(t *testing.T) {
	l := lead()
	l.outcome, l.at = attempted(compileError("policymodules/b/rule.rego")), noon.Add(20*day)
	l.reconcile(t)
	if diff := cmp.Diff([]string{"PipePolicy/p Warning Waits", "PolicyModule/a Warning Waits"}, l.heard.taken()); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsToldThatWasNotWritten(t *testing.T) {
	for name, fail := range map[string]error{
		"a conflict":          apierrors.NewConflict(schema.GroupResource{}, "p", errors.New("newer")),
		"an object that went": apierrors.NewNotFound(schema.GroupResource{}, "p"),
		"a refusal":           apierrors.NewForbidden(schema.GroupResource{}, "p", errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			l := lead()
			l.server.fail = fail
			result, err := l.pipePolicies(t.Context(), request("p"))
			if apierrors.IsForbidden(fail) != (err != nil) || err == nil && result.RequeueAfter != retryConflict {
				t.Errorf("result %+v, %v", result, err)
			}
			if got := l.heard.taken(); got != nil {
				t.Errorf("Events %q", got)
			}
			l.server.fail = nil
			l.reconcile(t)
			if got := l.heard.taken(); len(got) != 4 {
				t.Errorf("Events %q", got)
			}
		})
	}
}

func TestAPatchHoldsOnlyForTheObjectThatItIsAbout(t *testing.T) {
	l := lead()
	l.server.module.ResourceVersion = "41"
	l.reconcile(t)
	for i, version := range []string{"0", "41"} {
		var got struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal([]byte(l.server.patches[i]), &got); err != nil || got.Metadata.ResourceVersion != version {
			t.Errorf("patch %s", l.server.patches[i])
		}
	}
}

func TestNothingIsWrittenBeforeTheFirstAttempt(t *testing.T) {
	l := lead()
	l.outcome = Outcome{}
	l.reconcile(t)
	l.outcome = attempted(nil)
	l.server.pipe.Generation, l.server.module.Generation = 3, 3 // not attempted yet
	l.reconcile(t)
	if len(l.server.patches) != 0 {
		t.Errorf("patches %q", l.server.patches)
	}
}

func TestANamesakeOfWhatWasDeletedIsANewObject(t *testing.T) {
	l := lead()
	l.server.pipe.Spec.Subjects = []v1alpha1.Subject{ending("s", day)}
	l.reconcile(t)
	l.heard.taken()
	again := pipePolicy("p", 2, ending("s", day)) // deleted and made anew between two looks
	again.UID, again.ResourceVersion = "other", "9"
	l.server.pipe = &again
	l.outcome = attempted(nil)
	l.outcome.Generations = map[ObjectKey]int64{{Kind: "PipePolicy", Name: "p", UID: "other"}: 2, keyA: 2}
	l.outcome.Active = l.outcome.Generations
	l.reconcile(t)
	want := []string{"PipePolicy/p Normal Activated", "PipePolicy/p Normal Published", "PipePolicy/pspec.subjects{s} Warning SubjectExpiring"}
	if diff := cmp.Diff(want, l.heard.taken()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsDeletedIsForgotten(t *testing.T) {
	l := lead()
	reg := prometheus.NewRegistry()
	reg.MustRegister(l.metrics.subjects)
	l.reconcile(t)
	if got := gathered(t, reg); len(got) != 4 {
		t.Errorf("metrics %v", got)
	}
	l.server.module.Name = "p" // a namesake that is deleted takes nothing with it
	if _, err := l.policyModules(t.Context(), request("q")); err != nil {
		t.Fatal(err)
	}
	if got := gathered(t, reg); len(got) != 4 {
		t.Errorf("metrics %v", got)
	}
	l.server.pipe.DeletionTimestamp = &metav1.Time{Time: noon}
	patches := len(l.server.patches)
	l.replicas.Live = 9
	if _, err := l.pipePolicies(t.Context(), request("p")); err != nil {
		t.Fatal(err)
	}
	if got := gathered(t, reg); len(got) != 0 || len(l.recalls) != 1 || len(l.server.patches) != patches {
		t.Errorf("metrics %v, recalls %v", got, l.recalls)
	}
}
