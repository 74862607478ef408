package controller

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// retryConflict is how soon a status is written again that another writer changed in between. The cache knows by then.
const retryConflict = time.Second

// writer writes the statuses of one kind of objects, on the leader. It is the work of one goroutine.
type writer struct {
	client     client.Client // reads from the cache
	outcome    func() (Outcome, bool)
	count      func(context.Context) (ReplicaCount, error)
	violations func(string) (int32, bool)
	otherModes func(string) (map[admission.OtherMode]int32, bool)
	bundles    func() Bundles // nil if none are made
	floor      func() Floor
	recorder   events.EventRecorder
	metrics    *Metrics
	log        *zap.Logger
	now        func() time.Time

	recalls map[string]reportedEvents // by name
}

// pipePolicies reconciles a PipePolicy.
func (w *writer) pipePolicies(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var o v1alpha1.PipePolicy
	if err := w.client.Get(ctx, req.NamespacedName, &o); err != nil || o.DeletionTimestamp != nil {
		delete(w.recalls, req.Name)
		w.metrics.subjects.forget(req.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	w.metrics.subjects.set(o.Name, o.Spec.Subjects)
	p, ok, err := w.statusInput(ctx)
	if err != nil || !ok {
		return reconcile.Result{}, err
	}
	var violations *int32
	if n, known := w.violations(o.Name); known {
		violations = &n
	}
	var modes *condition
	if found, known := w.otherModes(o.Name); known {
		modes = new(modesServed(found))
	}
	status, ok := p.pipePolicyStatus(&o, violations, modes)
	if !ok {
		return reconcile.Result{}, nil
	}
	was := w.recalled(o.Name, func() reportedEvents { return recallPipePolicy(&o) }, &o)
	notes := transitions(o.Status.PolicyStatus, status.PolicyStatus, was.published)
	next := was.withStatus(status.PolicyStatus)
	if isActive(status.PolicyStatus) { // else its subjects have no permission that could end
		var ends []note
		next, ends = next.withSubjects(o.Spec.Subjects, p.now)
		notes = append(notes, ends...)
	}
	before := o.DeepCopy()
	o.Status = status
	conflict, err := w.write(ctx, &o, before, equality.Semantic.DeepEqual(before.Status, status))
	if err != nil || conflict {
		return reconcile.Result{RequeueAfter: retryConflict}, err
	}
	w.tell(kindPipePolicy, &o, notes)
	w.recalls[o.Name] = next
	wait, ok := untilNextStanding(o.Spec.Subjects, p.now)
	if !ok {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// policyModules reconciles a PolicyModule.
func (w *writer) policyModules(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var o v1alpha1.PolicyModule
	if err := w.client.Get(ctx, req.NamespacedName, &o); err != nil || o.DeletionTimestamp != nil {
		delete(w.recalls, req.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	p, ok, err := w.statusInput(ctx)
	if err != nil || !ok {
		return reconcile.Result{}, err
	}
	status, ok := p.policyModuleStatus(&o)
	if !ok {
		return reconcile.Result{}, nil
	}
	was := w.recalled(o.Name, func() reportedEvents { return recallStatus(o.UID, o.Status.PolicyStatus) }, &o)
	notes := transitions(o.Status.PolicyStatus, status.PolicyStatus, was.published)
	before := o.DeepCopy()
	o.Status = status
	conflict, err := w.write(ctx, &o, before, equality.Semantic.DeepEqual(before.Status, status))
	if err != nil || conflict {
		return reconcile.Result{RequeueAfter: retryConflict}, err
	}
	w.tell(kindPolicyModule, &o, notes)
	w.recalls[o.Name] = was.withStatus(status.PolicyStatus)
	return reconcile.Result{}, nil
}

// statusInput gathers what statuses are computed from; false before the first attempt. The sweeper comes back after it.
func (w *writer) statusInput(ctx context.Context) (statusInput, bool, error) {
	o, ok := w.outcome()
	if !ok {
		return statusInput{}, false, nil
	}
	c, err := w.count(ctx)
	if err != nil {
		return statusInput{}, false, err
	}
	p := statusInput{outcome: o, fault: explain(o.Err), replicas: c, now: w.now()}
	if w.bundles != nil {
		p.bundles = new(w.bundles())
	}
	if w.floor != nil {
		p.floor = new(w.floor())
	}
	return p, true, nil
}

// recalled is what was told of an object. A namesake of one that was deleted has been told nothing.
func (w *writer) recalled(name string, begin func() reportedEvents, o client.Object) reportedEvents {
	if r, ok := w.recalls[name]; ok && r.uid == o.GetUID() {
		return r
	}
	return begin()
}

// write stores a status, unless it is there already. The patch holds only for the object that the status is about: over a
// newer one it would keep the wrong time of a transition. True means that the cache was late.
func (w *writer) write(ctx context.Context, o, before client.Object, same bool) (conflict bool, err error) {
	if same {
		return false, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = w.client.Status().Patch(ctx, o, patch, fieldOwner)
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsConflict(err):
		return true, nil
	case apierrors.IsNotFound(err): // deleted in between, which will be told
		return true, nil
	}
	return false, fmt.Errorf("write status: %w", err)
}

// tell emits Events and log lines.
func (w *writer) tell(kind string, o client.Object, notes []note) {
	gv := v1alpha1.GroupVersion()
	for _, n := range notes {
		w.recorder.Eventf(reference(gv.WithKind(kind), o, n.fieldPath()), nil, n.kind, n.reason, n.action, "%s", n.text)
		fields := []zap.Field{zap.String(logkeys.Kind, kind), zap.String(logkeys.Name, o.GetName()), zap.String(logkeys.Reason, n.reason), zap.String(logkeys.Note, n.text)}
		if n.kind == corev1.EventTypeWarning {
			w.log.Warn("policy object", fields...)
		} else {
			w.log.Info("policy object", fields...)
		}
	}
}

// reference names what an Event is about. The resource version keeps a refusal apart from the one before it: the
// recorder makes one series of Events that are alike in all but their text.
func reference(kind schema.GroupVersionKind, o client.Object, fieldPath string) *corev1.ObjectReference {
	version, name := kind.ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: version, Kind: name, Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), FieldPath: fieldPath,
	}
}
