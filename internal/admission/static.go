package admission

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
)

// mirrorAnnotation marks the mirror of a static pod: what the API server knows of a pod that a kubelet started from a
// file of its own.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// isStatic reports whether a request makes the mirror of a static pod, at the hands of its own node. Such a pod runs already and
// goes on running: to refuse its mirror would hide it and stop nothing. What it has is reported, and only its node can stop it.
//
// The annotation alone proves nothing, anyone can write it. The user does: the API server authenticated it, and its
// NodeRestriction lets a node make mirrors of its own pods and no others.
func isStatic(req *admissionv1.AdmissionRequest, obj *object) bool {
	if req.Operation != admissionv1.Create || req.SubResource != "" || !obj.rules.holdsPods() || obj.rules.isTemplate() {
		return false
	}
	_, mirror := obj.meta.annotations[mirrorAnnotation]
	return mirror && obj.pod.nodeName != "" && req.UserInfo.Username == "system:node:"+obj.pod.nodeName &&
		slices.Contains(req.UserInfo.Groups, "system:nodes")
}
