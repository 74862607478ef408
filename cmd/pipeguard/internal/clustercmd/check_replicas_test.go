package clustercmd

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestReplicasThatDoNotDecide(t *testing.T) {
	findsFaults(t, map[string]fault{
		"too few replicas": {func(f *fakeAPI) { get[*appsv1.Deployment](t, f, atDeployment, 0).Status.ReadyReplicas = 1 }, "replicas", "1 of 2 replicas are ready"},
		"no replicas":      {func(f *fakeAPI) { get[*appsv1.Deployment](t, f, atDeployment, 0).Spec.Replicas = new(int32(0)) }, "replicas", "has no replicas"},
		"a rollout":        {func(f *fakeAPI) { get[*appsv1.Deployment](t, f, atDeployment, 0).Status.UpdatedReplicas = 1 }, "replicas", "a rollout has not finished"},
		"silent replicas":  {func(f *fakeAPI) { f.lists[atLeases] = []any{} }, "replicas", "no replica has reported lately"},
		"a replica that lags": {func(f *fakeAPI) {
			get[*coordinationv1.Lease](t, f, atLeases, 1).Annotations[v1alpha1.AnnotationRevision] = "sha256:2"
		}, "replicas", "different revisions: sha256:1, sha256:2"},
		"a replica without policies": {func(f *fakeAPI) {
			get[*coordinationv1.Lease](t, f, atLeases, 1).Annotations[v1alpha1.AnnotationRevision] = ""
		}, "replicas", "has no policies"},
		"a replica that failed": {func(f *fakeAPI) {
			get[*coordinationv1.Lease](t, f, atLeases, 1).Annotations[v1alpha1.AnnotationFailed] = "true"
		}, "replicas", "could not activate the newest policies"},
	})
}
