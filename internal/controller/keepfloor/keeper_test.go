package keepfloor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
)

const name, role = "guard-floor", "guard"

var labels = map[string]string{"part": "floor"}

// events are the reasons of events and of which objects they are.
type events []string

func (e *events) Eventf(about, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	*e = append(*e, fmt.Sprintf("%s %T", reason, about))
}

// kept is a Keeper of a floor in a cluster that has the ClusterRole.
type kept struct {
	*Keeper
	t       *testing.T
	cluster client.WithWatch
	metrics *prometheus.Registry
	events  events
	content Content
	decides bool
	told    int
	refuses func(text string) error // what the API server says to an object that is created
}

func keeper(t *testing.T, mode Mode, others ...client.Object) *kept {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(admissionv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	k := &kept{t: t, metrics: prometheus.NewRegistry(), decides: true, content: Content{Policies: admission.Policies{Parameters: admission.DefaultParameters()}, Revision: "sha256:1", Attempt: "1"}}
	k.cluster = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(others...).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if k.refuses != nil {
				text, err := p.Data(o)
				if err == nil {
					err = k.refuses(string(text))
				}
				if err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	var err error
	k.Keeper, err = New(Options{
		Objects: &Objects{client: k.cluster, name: name, ownerName: role}, Mode: mode, Name: name, Labels: labels, Metrics: NewMetrics(k.metrics),
		Source: func() (Content, bool) { return k.content, k.decides }, Tell: func() { k.told++ }, Events: &k.events,
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func owner() client.Object {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role, UID: "4711"}}
}

// live are the objects of the floor that there are, by kind and name.
func (k *kept) live() (out []client.Object) {
	k.t.Helper()
	for _, o := range floor.Empty(name) {
		err := k.cluster.Get(k.t.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil {
			out = append(out, o)
		} else if !apierrors.IsNotFound(err) {
			k.t.Fatal(err)
		}
	}
	return out
}

// looks has the keeper look, and says what came of it.
func (k *kept) looks() Result {
	k.t.Helper()
	k.keep(k.t.Context())
	r, _ := k.Result()
	return r
}

func (k *kept) inForce() float64 { return k.metric("pipeguard_floor_in_force", "") }

// metric is the value of a metric, of that with a label's value if it has one.
func (k *kept) metric(name, label string) float64 {
	k.t.Helper()
	families, err := k.metrics.Gather()
	if err != nil {
		k.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	k.t.Fatalf("there is no metric %s %s", name, label)
	return 0
}

func TestTheFloorIsWrittenOnceSomethingDecides(t *testing.T) {
	k := keeper(t, Always, owner())
	k.decides = false
	if k.looks(); len(k.live()) > 0 || k.told > 0 {
		t.Fatalf("nothing decides, and there are %v", k.live())
	}
	select {
	case <-k.Attempted():
		t.Error("attempted before anything decides")
	default:
	}
	k.decides = true
	if r := k.looks(); r.Err != nil || r.Attempt != "1" || len(k.live()) != 4 || k.told != 1 || k.inForce() != 1 {
		t.Fatalf("%+v, %d objects, told %d times", r, len(k.live()), k.told)
	}
	<-k.Attempted()
	for _, o := range k.live() {
		owners := o.GetOwnerReferences()
		if len(owners) != 1 || owners[0].UID != "4711" || o.GetAnnotations()[floor.RevisionAnnotation] != "sha256:1" || o.GetLabels()["part"] != "floor" {
			t.Errorf("%T %s: %+v", o, o.GetName(), owners)
		}
	}
	if k.looks(); k.told != 1 || len(k.events) > 0 {
		t.Errorf("nothing has changed: told %d times, %q", k.told, k.events)
	}
}

// What others change is put back and told; what other policies change is no news.
func TestOnlyAnothersChangeIsARepair(t *testing.T) {
	k := keeper(t, Always, owner())
	k.looks()
	k.content.Attempt, k.content.Revision = "2", "sha256:2"
	if r := k.looks(); r.Attempt != "2" || len(k.events) > 0 {
		t.Errorf("%+v, %q", r, k.events)
	}
	if err := k.cluster.Delete(t.Context(), k.live()[0]); err != nil {
		t.Fatal(err)
	}
	for _, o := range k.live() {
		if p, ok := o.(*admissionv1.ValidatingAdmissionPolicy); ok && p.Name == name {
			p.Spec.FailurePolicy = new(admissionv1.Ignore)
			if err := k.cluster.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := k.looks()
	want := events{"FloorRestored *v1.ValidatingAdmissionPolicy", "FloorRestored *v1.ValidatingAdmissionPolicyBinding"}
	slices.Sort(k.events)
	if !slices.Equal(k.events, want) || r.Err != nil || len(k.live()) != 4 {
		t.Errorf("%q, %+v, %d objects", k.events, r, len(k.live()))
	}
	for _, what := range []change{removed, altered} {
		if n := k.metric("pipeguard_floor_repairs_total", string(what)); n != 1 {
			t.Errorf("%s: %v repairs", what, n)
		}
	}
}

// A floor without its owner would outlast the installation.
func TestNothingIsWrittenWithoutTheOwner(t *testing.T) {
	for what, others := range map[string][]client.Object{"none": nil, "one that is being removed": {
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role, UID: "1", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{"x/y"}}},
	}} {
		k := keeper(t, Always, others...)
		if r := k.looks(); !errors.Is(r.Err, errNoOwner) || len(k.live()) > 0 || k.inForce() != 0 {
			t.Errorf("%s: %+v, %d objects", what, r, len(k.live()))
		}
		<-k.Attempted() // what cannot be written keeps nothing else waiting
	}
}

func TestPoliciesThatAreTooManyCloseTheFloor(t *testing.T) {
	k := keeper(t, Always, owner())
	for i := range 10_000 {
		k.content.Policies.Parameters.GuardedPipes = append(k.content.Policies.Parameters.GuardedPipes, fmt.Sprintf("pipe-%d", i))
	}
	r := k.looks()
	if !errors.Is(r.Err, floor.ErrTooLarge) || len(k.live()) != 4 || k.inForce() != 0 {
		t.Fatalf("%+v, %d objects", r, len(k.live()))
	}
	closed, err := floor.Closed(floor.Options{Name: name, Policies: k.content.Policies, Revision: "sha256:1", Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range closed.Objects() {
		for _, o := range k.live() {
			if o.GetName() == want.GetName() && fmt.Sprintf("%T", o) == fmt.Sprintf("%T", want) && !floor.SameSpec(o.(floor.Object), want) {
				t.Errorf("%T %s is not closed", o, o.GetName())
			}
		}
	}
}

// What the API server does not take is no reason to go on with an older floor, or without one.
func TestAFloorThatIsNotTakenIsClosed(t *testing.T) {
	k := keeper(t, Always, owner())
	k.content.Policies.PipePolicies = map[string]admission.PipePolicy{"mine": {Pipes: []string{"zz-mine"}}}
	k.refuses = func(text string) error {
		if strings.Contains(text, "zz-mine") {
			return apierrors.NewInvalid(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy").GroupKind(), name, nil)
		}
		return nil
	}
	if r := k.looks(); !apierrors.IsInvalid(r.Err) || len(k.live()) != 4 || k.inForce() != 0 {
		t.Errorf("%+v, %d objects", r, len(k.live()))
	}
	k.refuses = func(string) error { return apierrors.NewInternalError(errors.New("x")) }
	k.content.Attempt = "2"
	if err := k.cluster.DeleteAllOf(t.Context(), &admissionv1.ValidatingAdmissionPolicy{}); err != nil {
		t.Fatal(err)
	}
	if r := k.looks(); r.Err == nil || apierrors.IsInvalid(r.Err) || len(k.live()) != 2 {
		t.Errorf("%+v, %d objects", r, len(k.live()))
	}
}

// Switched off, a floor goes, and an object of its name that is not its own stays.
func TestSwitchedOffTheFloorIsRemoved(t *testing.T) {
	k := keeper(t, Always, owner())
	k.looks()
	mine := k.live()[0]
	mine.SetLabels(map[string]string{"part": "another's"})
	if err := k.cluster.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	k.o.Mode = Off
	asked := false
	k.o.Removable = func() bool { return asked }
	if r := k.looks(); r.Err != nil || len(k.live()) != 4 {
		t.Errorf("nothing is in its place yet: %+v, there are %v", r, k.live())
	}
	<-k.Attempted() // what takes its place need not wait
	asked = true
	if r := k.looks(); r.Err != nil || len(k.live()) != 1 {
		t.Errorf("%+v, there are %v", r, k.live())
	}
}

func TestATermEndsWithWhatItTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper(t, Off)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Start(ctx) }()
		synctest.Wait()
		if _, ok := k.Result(); !ok {
			t.Error("it has not looked")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, ok := k.Result(); ok {
			t.Error("a result outlasts the term")
		}
	})
}

func TestOptionsThatMakeNoKeeper(t *testing.T) {
	good := keeper(t, Always).o
	for want, change := range map[string]func(*Options){
		"objects": func(o *Options) { o.Objects = nil }, "mode": func(o *Options) { o.Mode = "on" }, "name": func(o *Options) { o.Name = "" },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
