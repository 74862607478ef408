package main

import (
	"fmt"
	"slices"
	"strings"
)

// judgement says what can be done with an object of some kind.
type judgement int

const (
	judgeUnknown   judgement = iota // it may lead to a pod, for all that is known
	judgePod                        // a bare pod
	judgeReview                     // an AdmissionReview with its request
	judgeNotYet                     // known to lead to pods or host paths, and not judged by this version
	judgeHarmless                   // known to lead to none
	judgeLeftAside                  // named by --ignore
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
	case gk == "Pod" && apiVersion == "v1":
		return judgePod
	case gk == "AdmissionReview.admission.k8s.io":
		return judgeReview
	case slices.Contains(notYet(), gk):
		return judgeNotYet
	case slices.Contains(harmless(), gk):
		return judgeHarmless
	case slices.Contains(ignored, gk):
		return judgeLeftAside
	}
	return judgeUnknown
}

// checkIgnored refuses to leave aside what is judged, or known to lead to pods.
func checkIgnored(ignored []string) error {
	for _, gk := range ignored {
		if gk == "Pod" || gk == "AdmissionReview.admission.k8s.io" || slices.Contains(notYet(), gk) {
			return fmt.Errorf("--ignore %s: this kind can carry a guarded pipe", gk)
		}
	}
	return nil
}

func notYet() []string {
	return []string{
		"CronJob.batch", "DaemonSet.apps", "Deployment.apps", "Job.batch", "PersistentVolume",
		"PodTemplate", "ReplicaSet.apps", "ReplicationController", "StatefulSet.apps",
	}
}

func harmless() []string {
	return []string{
		"CSIDriver.storage.k8s.io", "ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
		"ConfigMap", "CustomResourceDefinition.apiextensions.k8s.io", "HorizontalPodAutoscaler.autoscaling",
		"Ingress.networking.k8s.io", "IngressClass.networking.k8s.io", "LimitRange", "Namespace",
		"NetworkPolicy.networking.k8s.io", "PersistentVolumeClaim", "PodDisruptionBudget.policy",
		"PriorityClass.scheduling.k8s.io", "ResourceQuota", "Role.rbac.authorization.k8s.io",
		"RoleBinding.rbac.authorization.k8s.io", "RuntimeClass.node.k8s.io", "Secret", "Service", "ServiceAccount",
		"StorageClass.storage.k8s.io", "VolumeAttributesClass.storage.k8s.io", "VolumeSnapshotClass.snapshot.storage.k8s.io",
	}
}
