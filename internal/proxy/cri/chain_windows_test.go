package cri

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/kubelet"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// callOurselves opens a pipe of this process's own.
func callOurselves(t *testing.T, name string) net.Conn {
	t.Helper()
	listener, err := winio.ListenPipe(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	wait := 50 * time.Millisecond
	if spent, err := winio.DialPipe(name, &wait); err == nil { // see listen
		t.Cleanup(func() { _ = spent.Close() })
	}
	dialed := make(chan error, 1)
	go func() {
		client, err := winio.DialPipe(name, nil)
		if err == nil {
			t.Cleanup(func() { _ = client.Close() })
		}
		dialed <- err
	}()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	if err := <-dialed; err != nil {
		t.Fatal(err)
	}
	return accepted
}

// enter puts this process into the job of a HostProcess container, as the shim makes it. It cannot leave it again.
func enter(t *testing.T, id string) {
	t.Helper()
	descriptor, err := windows.SecurityDescriptorFromString("O:BAG:BAD:(A;;GA;;;WD)")
	if err != nil {
		t.Fatal(err)
	}
	attributes := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	name, err := windows.UTF16PtrFromString(`Global\JobContainer_` + id)
	if err != nil {
		t.Fatal(err)
	}
	job, err := windows.CreateJobObject(attributes, name) // open until this process ends
	if err != nil {
		t.Fatal(err)
	}
	if err := windows.AssignProcessToJobObject(job, windows.CurrentProcess()); err != nil {
		t.Fatal(err)
	}
}

// TestCallerIsNamedFromItsProcessToItsServiceAccount has a real process, job and pipes, and a runtime that speaks its
// protocol on one of them.
func TestCallerIsNamedFromItsProcessToItsServiceAccount(t *testing.T) {
	f := onePod()
	s, other := pod("2", "b")
	f.containers, f.sandboxes = append(f.containers, other), append(f.sandboxes, s)
	dial, err := Dialer(Endpoint{Address: listen(t, f), Users: []string{self(t)}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	file := filepath.Join(t.TempDir(), "pods.json")
	content := `{"pods":[{"uid":"` + uid("a") + `","namespace":"storage","name":"csi-a","serviceAccount":"csi-node"}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	resolver := peer.New(peer.Options{Containers: c, Accounts: kubelet.NewSnapshot(file)})
	resolve := func(pipe string) (caller.Caller, error) {
		accepted := callOurselves(t, `\\.\pipe\`+strings.ToLower(t.Name())+pipe)
		p, err := resolver.Resolve(accepted, peer.Note(accepted))
		if err != nil {
			return caller.Caller{}, err
		}
		t.Cleanup(func() { _ = p.Close() })
		return p.Identity(), nil
	}

	before, err := resolve("-before")
	if err != nil || !before.IsHost || before.HasPod() || before.Assurance != caller.AssuranceProcess {
		t.Errorf("outside of containers: %+v, %v", before, err)
	}

	enter(t, id("a"))
	within, err := resolve("-within")
	if err != nil {
		t.Fatal(err)
	}
	if within.Pod.Namespace != "storage" || within.Pod.Name != "csi-a" || within.Container.Name != "driver" || within.Pod.ServiceAccount != "csi-node" || !within.Container.HostProcess {
		t.Errorf("in a container: %+v, %+v", within.Container, within.Pod)
	}

	f.change(func() { f.containers[0].State = runtimeapi.ContainerState_CONTAINER_EXITED })
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := resolve("-after"); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("in a container that has ended: %+v, %v", after, err)
	}
	if before.HasPod() || within.Pod.Name != "csi-a" {
		t.Error("an identity has changed")
	}
}
