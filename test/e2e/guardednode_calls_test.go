//go:build e2e

package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
	"github.com/pipeguard/pipeguard/test/harness"
)

// caller is a container that calls, as the API server and the kubelet know it.
type caller struct{ pod, uid, account, container, id string }

// pod starts a pod of two containers that have the node's pipes and a program to call them with.
func (n *guardedNode) pod(t *testing.T, name, account string) (main, sidecar caller) {
	t.Helper()
	// Sockets are their owner's alone.
	asRoot := func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64)}
	}
	p := pod(storage, name, as(account, "main"), mounts(n.sockets), mounts(n.tools), asRoot, onLinux)
	p.Spec.Containers = append(p.Spec.Containers, *p.Spec.Containers[0].DeepCopy())
	p.Spec.Containers[1].Name = "sidecar"
	mustAdmit(t, p)
	harness.Eventually(t, readyLimit, name+" runs", running(p))
	if err := shared.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	callers := map[string]caller{}
	for _, s := range p.Status.ContainerStatuses {
		_, id, _ := strings.Cut(s.ContainerID, "://")
		callers[s.Name] = caller{name, string(p.UID), account, s.Name, id}
	}
	return callers["main"], callers["sidecar"]
}

// call has a container make a call.
func (n *guardedNode) call(t *testing.T, c caller, method, request string) (string, error) {
	t.Helper()
	return shared.Kubectl(t.Context(), "exec", "--namespace="+storage, "--container="+c.container, c.pod, "--",
		"/volume-b/pipeguard", "call", "--socket-dir=/volume-a", "--pipe=disk-v1", method, request)
}

func (n *guardedNode) mustServe(t *testing.T, c caller, method, request string) {
	t.Helper()
	if out, err := n.call(t, c, method, request); err != nil {
		t.Errorf("%s by %s of %s is refused: %v\n%s", method, c.container, c.pod, err, out)
	}
}

func (n *guardedNode) mustDeny(t *testing.T, c caller, method, request string, words ...string) {
	t.Helper()
	out, err := n.call(t, c, method, request)
	if err == nil {
		t.Errorf("%s by %s of %s is served: %s", method, c.container, c.pod, out)
	}
	for _, word := range append([]string{"PermissionDenied"}, words...) {
		if !strings.Contains(out, word) {
			t.Errorf("the refusal of %s by %s of %s does not say %q: %s", method, c.container, c.pod, word, out)
		}
	}
}

// callFromNode makes a call as a program of the node, in no container.
func (n *guardedNode) callFromNode(t *testing.T, method string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(n.tools, "pipeguard"), "call", "--socket-dir="+n.sockets, "--pipe=disk-v1", method, "{}")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// records are the proxy's so far.
func (n *guardedNode) records(t *testing.T) (all []audit.Event) {
	t.Helper()
	for e, err := range recorded.Events(n.audits) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// starts counts how often the proxy has begun to write records.
func (n *guardedNode) starts(t *testing.T) (starts int) {
	t.Helper()
	for _, e := range n.records(t) {
		if e.Stage == audit.StageLogOpen {
			starts++
		}
	}
	return starts
}
