package admission

import (
	"context"
	"maps"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// isUnchanged says whether an update that the policy refuses changes nothing that the refusal is about.
//
// A pod can be older than the rule that refuses it: its namespace was allowed once, or the webhook was not there yet.
// If every later update of it were refused, no controller could remove its finalizers and no kubelet its last
// bookkeeping, so the pod could never be deleted, and the refusal would keep alive what it means to prevent.
// Letting such an update pass gives nobody anything: the containers run, or ran, or may be started at any time, with what
// they hold. An update that takes a scheduling gate away is what lets a pod start, so it is none of these. The same goes for
// templates, whose pods are judged one by one, and for PersistentVolumes: there it is the claim that gives access, so an
// update that binds one is judged in full.
//
// It must not become a way in. So the update passes only if the object before it is the same object, has the same
// containers (image, privileged, HostProcess and account included), mounts, declared volumes, service account and runtime
// annotations, the same paths and claim of a PersistentVolume, and if the policy refuses the old object for the very same findings. Anything less, also an old object
// that is missing or cannot be read, leaves the refusal as it is. Adding an ephemeral container is never such an update.
func (r *Reviewer) isUnchanged(ctx context.Context, req *admissionv1.AdmissionRequest, j *judgement, obj *object, e *extraction) bool {
	if req.Operation != admissionv1.Update || req.SubResource == "ephemeralcontainers" {
		return false
	}
	old, err := readObject(req.OldObject.Raw, req.Kind, j.allowance)
	if err != nil {
		return false
	}
	if old.meta.name != obj.meta.name || old.meta.namespace != obj.meta.namespace || old.meta.uid != obj.meta.uid {
		return false
	}
	before, err := extract(j.scope, &old, j.allowance)
	if err != nil || !sameAccess(&before, e) || old.pod.serviceAccount != obj.pod.serviceAccount ||
		old.pod.gates != obj.pod.gates || old.pod.hostNetwork != obj.pod.hostNetwork || !reflect.DeepEqual(old.volume, obj.volume) ||
		!maps.Equal(runtimeAnnotations(old.podMeta()), runtimeAnnotations(obj.podMeta())) {
		return false
	}
	in, err := j.scope.input(req, &old, &before, r.namespaces, j.start, j.allowance)
	if err != nil {
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
	return !slices.ContainsFunc(slices.Concat(denials(j.decision), j.decision.Untold), func(f policy.Finding) bool { return !already[f] })
}

func sameAccess(a, b *extraction) bool {
	return slices.EqualFunc(a.containers, b.containers, func(x, y Container) bool { x.Access, y.Access = nil, nil; return x == y }) &&
		slices.EqualFunc(a.mounts, b.mounts, func(x, y Mount) bool { return sameTarget(&x.Target, &y.Target) && reflect.DeepEqual(x, y) }) &&
		slices.EqualFunc(a.unmounted, b.unmounted, func(x, y Volume) bool { return sameTarget(&x.Target, &y.Target) && reflect.DeepEqual(x, y) }) &&
		slices.EqualFunc(a.persistent, b.persistent, func(x, y PersistentVolume) bool { return sameTarget(&x.Target, &y.Target) && reflect.DeepEqual(x, y) })
}

// sameTarget compares two copies, and takes from them what is found anew for each object: what policies say of it.
func sameTarget(a, b *Target) bool {
	a.Access, a.governing, b.Access, b.governing = nil, nil, nil, nil
	return reflect.DeepEqual(*a, *b)
}

func runtimeAnnotations(pod *metadata) map[string]string {
	found := map[string]string{}
	for k, v := range pod.annotations {
		if isRuntimeAnnotation(k) {
			found[k] = v
		}
	}
	return found
}
