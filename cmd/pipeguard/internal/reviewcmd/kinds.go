package reviewcmd

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// judgement says what can be done with an object of some kind.
type judgement int

const (
	judgeUnknown      judgement = iota // it may lead to a pod, for all that is known
	judgeObject                        // a kind that the webhook judges
	judgeReview                        // an AdmissionReview with its request
	judgeOtherVersion                  // a judged kind in a version that is not
	judgeHarmless                      // known to lead to none
	judgeLeftAside                     // named by --ignore
)

// groupKind is a kind without its version, as kubectl writes it: Deployment.apps, Pod.
func groupKind(apiVersion, kind string) string {
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		return kind
	}
	return kind + "." + group
}

// judgementOf sorts a kind. Kinds that no list names are unknown: a controller could make pods of them.
func judgementOf(apiVersion, kind string, ignored []string) judgement {
	gk := groupKind(apiVersion, kind)
	switch {
	case slices.ContainsFunc(admission.Kinds(), func(k metav1.GroupVersionKind) bool {
		return metav1.GroupVersion{Group: k.Group, Version: k.Version}.String() == apiVersion && k.Kind == kind
	}):
		return judgeObject
	case gk == "AdmissionReview.admission.k8s.io":
		return judgeReview
	case slices.Contains(judged(), gk):
		return judgeOtherVersion
	case slices.Contains(harmless(), gk):
		return judgeHarmless
	case slices.Contains(ignored, gk):
		return judgeLeftAside
	}
	return judgeUnknown
}

// checkIgnored refuses to leave aside what is judged.
func checkIgnored(ignored []string) error {
	for _, gk := range ignored {
		if gk == "AdmissionReview.admission.k8s.io" || slices.Contains(judged(), gk) {
			return fmt.Errorf("--ignore %s: this kind can carry a guarded pipe", gk)
		}
	}
	return nil
}

// judged are the kinds that the webhook judges, without their versions.
func judged() (out []string) {
	for _, k := range admission.Kinds() {
		out = append(out, groupKind(metav1.GroupVersion{Group: k.Group, Version: k.Version}.String(), k.Kind))
	}
	return out
}

func harmless() []string {
	return []string{
		"CSIDriver.storage.k8s.io", "ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
		"ConfigMap", "CustomResourceDefinition.apiextensions.k8s.io", "HorizontalPodAutoscaler.autoscaling",
		"Ingress.networking.k8s.io", "IngressClass.networking.k8s.io", "LimitRange", "Namespace",
		"NetworkPolicy.networking.k8s.io", "PersistentVolumeClaim", "PodDisruptionBudget.policy",
		"PipePolicy.pipeguard.dev", "PolicyModule.pipeguard.dev", "PriorityClass.scheduling.k8s.io", "ResourceQuota", "Role.rbac.authorization.k8s.io",
		"RoleBinding.rbac.authorization.k8s.io", "RuntimeClass.node.k8s.io", "Secret", "Service", "ServiceAccount",
		"StorageClass.storage.k8s.io", "VolumeAttributesClass.storage.k8s.io", "VolumeSnapshotClass.snapshot.storage.k8s.io",
	}
}
