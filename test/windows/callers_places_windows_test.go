package windows

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// place is a container of a pod.
type place struct {
	namespace, pod, uid, container, id string
	job                                windows.Handle
}

// newPlace draws an id and makes the job that the host compute service would.
func newPlace(t *testing.T, namespace, pod, digit string) place {
	t.Helper()
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	p := place{namespace: namespace, pod: pod, container: "driver", id: hex.EncodeToString(b)}
	d := func(n int) string { return strings.Repeat(digit, n) }
	p.uid = d(8) + "-" + d(4) + "-" + d(4) + "-" + d(4) + "-" + d(12)
	descriptor, err := windows.SecurityDescriptorFromString("O:BAG:BAD:(A;;GA;;;WD)")
	if err != nil {
		t.Fatal(err)
	}
	name, err := windows.NewNTUnicodeString(`\Container_` + p.id)
	if err != nil {
		t.Fatal(err)
	}
	attributes := windows.OBJECT_ATTRIBUTES{ObjectName: name, SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	made, _, _ := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtCreateJobObject").Call(
		uintptr(unsafe.Pointer(&p.job)), windows.MAXIMUM_ALLOWED, uintptr(unsafe.Pointer(&attributes)))
	if windows.NTStatus(made) != windows.STATUS_SUCCESS {
		t.Fatalf("make a job: %v", windows.NTStatus(made))
	}
	t.Cleanup(func() { _ = windows.CloseHandle(p.job) })
	return p
}

// containerRuntime lists the containers of some places over the runtime's own protocol.
type containerRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	places []place
}

func (p place) labels() map[string]string {
	return map[string]string{"io.kubernetes.pod.name": p.pod, "io.kubernetes.pod.namespace": p.namespace, "io.kubernetes.pod.uid": p.uid}
}

func (r containerRuntime) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	answer := &runtimeapi.ListContainersResponse{}
	for i, p := range r.places {
		labels := p.labels()
		labels["io.kubernetes.container.name"] = p.container
		answer.Containers = append(answer.Containers, &runtimeapi.Container{
			Id: p.id, PodSandboxId: fmt.Sprintf("%064x", i), Metadata: &runtimeapi.ContainerMetadata{Name: p.container},
			Image: &runtimeapi.ImageSpec{Image: "registry.example/driver:v1"}, State: runtimeapi.ContainerState_CONTAINER_RUNNING, Labels: labels,
		})
	}
	return answer, nil
}

func (r containerRuntime) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	answer := &runtimeapi.ListPodSandboxResponse{}
	for i, p := range r.places {
		answer.Items = append(answer.Items, &runtimeapi.PodSandbox{
			Id: fmt.Sprintf("%064x", i), Metadata: &runtimeapi.PodSandboxMetadata{Name: p.pod, Namespace: p.namespace, Uid: p.uid}, Labels: p.labels(),
		})
	}
	return answer, nil
}

// serveRuntime listens as containerd does, on a pipe.
func serveRuntime(t *testing.T, places ...place) (address string) {
	t.Helper()
	address = `\\.\pipe\fake-containerd-` + strings.ToLower(t.Name())
	listener, err := winio.ListenPipe(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	wait := 50 * time.Millisecond
	if spent, err := winio.DialPipe(address, &wait); err == nil { // Wine lets a client into the first instance, which nobody serves
		t.Cleanup(func() { _ = spent.Close() })
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, containerRuntime{places: places})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return address
}

// containers are what a configuration says of a runtime, run by some account, and of the service accounts of places.
func containers(t *testing.T, user string, places ...place) string {
	t.Helper()
	pods := make([]string, len(places))
	for i, p := range places {
		pods[i] = fmt.Sprintf(`{"uid":%q,"namespace":%q,"name":%q,"serviceAccount":%q}`, p.uid, p.namespace, p.pod, p.pod)
	}
	snapshot := filepath.Join(t.TempDir(), "pods.json")
	if err := os.WriteFile(snapshot, []byte(`{"pods":[`+strings.Join(pods, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("containers:\n  endpoint: %s\n  users: [%s]\n  snapshot: %s\n", strconv.Quote(serveRuntime(t, places...)), user, strconv.Quote(snapshot))
}

func ownUser(t *testing.T) string {
	t.Helper()
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	return user.User.Sid.String()
}

// startWith runs the proxy on an invented machine with a configuration.
func startWith(t *testing.T, config string, more ...string) *proxy {
	t.Helper()
	name := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := os.WriteFile(name, []byte("apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, append([]string{"--host", "memory", "--config", name}, more...)...)
	p.config = name
	p.awaitPipe(diskPipe, nil)
	return p
}
