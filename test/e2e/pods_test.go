//go:build e2e

package e2e_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/e2e/cluster"
)

const diskPipe = `\\.\pipe\csi-proxy-disk-v1`

// change makes a pod another one.
type change func(*corev1.Pod)

// pod returns a pod with one container that only waits.
func pod(namespace, name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers:                    []corev1.Container{{Name: "main", Image: cluster.ProgramImage}},
		},
	}
	for _, c := range changes {
		c(p)
	}
	return p
}

// mounts gives the pod's container a directory or pipe of the node.
func mounts(path string) change {
	return func(p *corev1.Pod) {
		declares(path)(p)
		c := &p.Spec.Containers[0]
		name := p.Spec.Volumes[len(p.Spec.Volumes)-1].Name
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
}

// declares gives the pod a volume that no container mounts.
func declares(path string) change {
	return func(p *corev1.Pod) {
		name := "volume-" + string(rune('a'+len(p.Spec.Volumes)))
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}},
		})
	}
}

// onWindows sends the pod to nodes with Windows, where it stays unstarted: there is only the object of such a node.
func onWindows(p *corev1.Pod) {
	p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"}
}

// unscheduled keeps the pod an object that nothing works on.
func unscheduled(p *corev1.Pod) { p.Spec.SchedulerName = "nobody" }

// privileged makes the container so.
func privileged(p *corev1.Pod) {
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
}

// as makes the pod that of a driver: its service account and its container's name.
func as(serviceAccount, container string) change {
	return func(p *corev1.Pod) {
		p.Spec.ServiceAccountName = serviceAccount
		p.Spec.Containers[0].Name = container
	}
}

// of gives the container an image.
func of(image string) change {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
}

// hostNetwork makes the pod share the node's network, as those do that make networks.
func hostNetwork(p *corev1.Pod) { p.Spec.HostNetwork = true }

// daemonSet returns a DaemonSet of such pods.
func daemonSet(p *corev1.Pod) *appsv1.DaemonSet {
	labels := map[string]string{"daemon": p.Name}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.Spec},
		},
	}
}

// namespace makes a namespace with service accounts.
func namespace(t *testing.T, name string, serviceAccounts ...string) {
	t.Helper()
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	for _, account := range append([]string{"default"}, serviceAccounts...) {
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: account}})
	}
	for _, o := range objects {
		if err := shared.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// windowsNode makes the object of a node with Windows, so that DaemonSets make pods for it. Nothing runs there.
func windowsNode(t *testing.T) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "windows", Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
	if err := shared.Client.Create(t.Context(), node); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("create a node: %v", err)
	}
}
