// Package cluster brings up Kubernetes with one node in namespaces of its own: etcd, the control plane, containerd, kubelet and kube-proxy.
// It trusts the kernel to end with the namespaces all that runs in them, so that nothing stays behind however a run ends.
package cluster
