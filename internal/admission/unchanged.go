package admission

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// isUnchanged reports whether an update that the policy refuses changes nothing that the refusal could be about.
//
// A pod can be older than the rule that refuses it: its namespace was allowed once, or the webhook was not there yet.
// If every later update of it were refused, no controller could remove its finalizers and no kubelet its last
// bookkeeping, so the pod could never be deleted, and the refusal would keep alive what it means to prevent.
// Letting such an update pass grants no access: the containers run, or ran, or may be started at any time, with what
// they hold. An update that takes a scheduling gate away lets a pod start, so it is not such an update. The same goes for
// templates, whose pods are judged one by one, and for PersistentVolumes: there the claim gives access, so an
// update that binds one is judged in full.
//
// It must not become a way in. So the update passes only if the object before it is the same object, if policies would receive the same
// input for both, and if the policy refuses the old object for the very same findings. Anything less, also an old object
// that is missing or cannot be read, leaves the refusal as it is. Adding an ephemeral container is never such an update.
func (r *Reviewer) isUnchanged(ctx context.Context, req *admissionv1.AdmissionRequest, j *judgement, obj *object) bool {
	if req.Operation != admissionv1.Update || req.SubResource == "ephemeralcontainers" {
		return false
	}
	old, err := readObject(req.OldObject.Raw, req.Kind, j.allowance)
	if err != nil {
		return false
	}
	if old.meta.name != obj.meta.name || old.meta.namespace != obj.meta.namespace || old.meta.uid != obj.meta.uid ||
		old.pod.gates != obj.pod.gates || !reflect.DeepEqual(old.volume, obj.volume) {
		return false
	}
	before, err := extract(j.scope, &old, j.allowance)
	if err != nil {
		return false
	}
	in, err := j.scope.input(req, &old, &before, r.o.Namespaces, j.start, j.allowance)
	if err != nil || !in.isLike(j.input) {
		return false
	}
	d, fail := r.decide(ctx, j, in, req.OldObject.Raw)
	if fail != nil {
		return false
	}
	already := map[policy.Finding]bool{}
	for _, f := range slices.Concat(denials(d), d.Untold) {
		already[f] = true
	}
	if slices.ContainsFunc(slices.Concat(denials(j.decision), j.decision.Untold), func(f policy.Finding) bool { return !already[f] }) {
		return false
	}
	return !j.snapshot.NeedsObject() || obj.rules.hasSameSpec(req.OldObject.Raw, req.Object.Raw)
}

// isLike compares inputs as policies receive them, so that no field can be forgotten, but for labels and annotations: they are the bookkeeping of controllers. Those
// that a container runtime may obey count.
func (in *Input) isLike(other *Input) bool {
	withoutBookkeeping := func(in Input) ast.Value {
		in.Labels, in.Pod.Labels, in.Annotations = nil, nil, maps.Clone(in.Pod.Annotations)
		maps.DeleteFunc(in.Annotations, func(key, _ string) bool { return !isRuntimeAnnotation(key) })
		in.Pod.Annotations = in.Annotations
		return in.value(nil, everyField)
	}
	return withoutBookkeeping(*in).Compare(withoutBookkeeping(*other)) == 0
}

// hasSameSpec compares what input.object has of two objects beside bookkeeping: pod specs, or the specs of PersistentVolumes. The rest, such as the number of
// replicas, is changed by controllers, and the pods that come of it are judged one by one.
func (k *judgedKind) hasSameSpec(a, b []byte) bool {
	spec := func(raw []byte) (ast.Value, error) {
		object, err := objectValue(raw)
		if err != nil {
			return nil, err
		}
		var path ast.Ref
		for _, key := range k.path {
			path = append(path, ast.StringTerm(key))
		}
		return object.Find(path)
	}
	one, err := spec(a)
	if err != nil {
		return false
	}
	two, err := spec(b)
	return err == nil && one.Compare(two) == 0
}
