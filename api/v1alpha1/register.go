package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the types of this package.
const Group = "pipeguard.dev"

// GroupVersion returns the API group and version of the types of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: "v1alpha1"}
}

// AddToScheme makes the types known to scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&PipePolicy{}, &PipePolicyList{},
		&PolicyModule{}, &PolicyModuleList{},
		&PipeReport{}, &PipeReportList{},
		&ClusterPipeReport{}, &ClusterPipeReportList{},
		&GuardedNode{}, &GuardedNodeList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
