package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/test/harness"
)

// These are the parts of a node that say who a caller is, each speaking its own protocol: control groups, which the kernel
// keeps; a container runtime on a socket; and a kubelet behind TLS.

// machine is one with pods.
type machine struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	t      *testing.T
	groups string // directory of control groups
	config string // of a proxy that asks here who callers are

	runtime *grpc.Server

	mu         sync.Mutex // guards the fields below
	containers []*runtimeapi.Container
	sandboxes  []*runtimeapi.PodSandbox
	accounts   []string // items of the kubelet's list
	silent     bool     // the runtime answers with an error
	token      string   // that the kubelet takes
}

// place is a container of a pod.
type place struct{ namespace, pod, uid, account, container, id string }

func uidOf(digit string) string {
	d := func(n int) string { return strings.Repeat(digit, n) }
	return d(8) + "-" + d(4) + "-" + d(4) + "-" + d(4) + "-" + d(12)
}

var (
	driverPlace   = place{"storage", "csi-node-a", uidOf("a"), "csi-node", "driver", strings.Repeat("a", 64)}
	neighbour     = place{"team", "web", uidOf("b"), "default", "driver", strings.Repeat("b", 64)}
	sidecarPlace  = place{"storage", "csi-node-a", uidOf("a"), "csi-node", "registrar", strings.Repeat("c", 64)}
	sameNameLater = place{"storage", "csi-node-a", uidOf("d"), "default", "driver", strings.Repeat("d", 64)}
)

// attackRules allow the driver's container what they allow anybody, by its service account.
const attackRules = `acl:
  rules:
  - name: driver
    pipes: [filesystem-v1]
    operations: [PathExists]
    callers: [{namespace: storage, serviceAccount: csi-node, container: driver}]
`

// newMachine makes a node with the driver, its sidecar and a neighbour. Without the right to make control groups there is
// nothing to test.
func newMachine(t *testing.T, more string) *machine {
	t.Helper()
	n := &machine{t: t, groups: controlGroups(t), token: "secret"}
	for i, p := range []place{driverPlace, sidecarPlace, neighbour} {
		n.add(p, i)
	}
	dir := shortDir(t)
	listener, err := net.Listen("unix", filepath.Join(dir, "cri"))
	if err != nil {
		t.Fatal(err)
	}
	n.runtime = grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(n.runtime, n)
	go func() { _ = n.runtime.Serve(listener) }()
	t.Cleanup(n.runtime.Stop)
	kubelet := httptest.NewTLSServer(http.HandlerFunc(n.pods))
	t.Cleanup(kubelet.Close)
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	text := []byte(harness.CertificatePEM(kubelet.Certificate()))
	n.config = filepath.Join(dir, "proxy.yaml")
	config := fmt.Sprintf("apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\ncontainers:\n  endpoint: unix://%s\n  users: [\"uid:%d\"]\n  poll: 1h\n  nameTimeout: 4s\n  kubelet: {url: %q, caFile: %q, tokenFile: %q}\n%s%s",
		filepath.Join(dir, "cri"), os.Getuid(), kubelet.URL, ca, token, attackRules, more)
	err = errors.Join(os.WriteFile(ca, text, 0o600), os.WriteFile(token, []byte("secret"), 0o600), os.WriteFile(n.config, []byte(config), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// add has the runtime and the kubelet know a container.
func (n *machine) add(p place, sandbox int) {
	labels := func() map[string]string {
		return map[string]string{"io.kubernetes.pod.name": p.pod, "io.kubernetes.pod.namespace": p.namespace, "io.kubernetes.pod.uid": p.uid}
	}
	own := labels()
	own["io.kubernetes.container.name"] = p.container
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sandboxes = append(n.sandboxes, &runtimeapi.PodSandbox{
		Id: fmt.Sprintf("%064x", sandbox), Metadata: &runtimeapi.PodSandboxMetadata{Name: p.pod, Namespace: p.namespace, Uid: p.uid}, Labels: labels(),
	})
	n.containers = append(n.containers, &runtimeapi.Container{
		Id: p.id, PodSandboxId: fmt.Sprintf("%064x", sandbox), Metadata: &runtimeapi.ContainerMetadata{Name: p.container},
		Image: &runtimeapi.ImageSpec{Image: "registry.example/driver:v1"}, State: runtimeapi.ContainerState_CONTAINER_RUNNING, Labels: own,
	})
	item := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q,"uid":%q},"spec":{"serviceAccountName":%q}}`, p.pod, p.namespace, p.uid, p.account)
	for _, known := range n.accounts {
		if known == item {
			return
		}
	}
	n.accounts = append(n.accounts, item)
}

func (n *machine) change(how func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	how()
}

func (n *machine) pods(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.URL.Path != "/pods" || r.Header.Get("Authorization") != "Bearer "+n.token {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","items":[%s]}`, strings.Join(n.accounts, ","))
}

func (n *machine) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.silent {
		return nil, status.Error(codes.Unavailable, "busy")
	}
	return &runtimeapi.ListContainersResponse{Containers: n.containers}, nil
}

func (n *machine) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &runtimeapi.ListPodSandboxResponse{Items: n.sandboxes}, nil
}

// group makes the control group of a container, or one below it.
func (n *machine) group(path ...string) string {
	n.t.Helper()
	dir := filepath.Join(append([]string{n.groups}, path...)...)
	for at := n.groups; at != dir; {
		rest, _ := filepath.Rel(at, dir)
		name, _, _ := strings.Cut(rest, "/")
		at = filepath.Join(at, name)
		if err := os.Mkdir(at, 0o755); err != nil && !os.IsExist(err) {
			n.t.Fatal(err)
		} else if err == nil {
			n.t.Cleanup(func() { removeGroup(n.t, at) })
		}
	}
	return dir
}

// controlGroups is a new group at the top of some hierarchy that can be written to.
func controlGroups(t *testing.T) string {
	t.Helper()
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mounts.Close() }()
	var unified, others []string
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		switch fields := strings.Fields(lines.Text()); fields[2] {
		case "cgroup2":
			unified = append(unified, fields[1])
		case "cgroup":
			if strings.Contains(fields[3], "pids") || strings.Contains(fields[3], "name=") {
				others = append(others, fields[1])
			}
		}
	}
	for _, at := range append(unified, others...) {
		dir, err := os.MkdirTemp(at, "pipeguard-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { removeGroup(t, dir) })
		return dir
	}
	const missing = "NOT TESTED: there are no control groups that can be made here, so no process can be put into a container"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// removeGroup waits for processes to have left a group: one that has ended is in it until the kernel has taken it apart.
func removeGroup(t *testing.T, group string) {
	t.Helper()
	for deadline := time.Now().Add(attackPatience); ; time.Sleep(5 * time.Millisecond) {
		err := os.Remove(group)
		if err == nil || os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("remove a control group: %v", err)
			return
		}
	}
}
