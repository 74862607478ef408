package cri

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/test/memnet"
)

// fakeRuntime serves the runtime's protocol. A test changes what it has.
type fakeRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	mu         sync.Mutex // guards the fields below
	containers []*runtimeapi.Container
	sandboxes  []*runtimeapi.PodSandbox
	err        error
	lists      int
	hold       chan struct{} // lists wait for its end; nil is no wait
	noEvents   bool
	streams    int
	events     chan *runtimeapi.ContainerEventResponse // closed to break the stream
}

func (f *fakeRuntime) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

func (f *fakeRuntime) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists
}

func (f *fakeRuntime) ListContainers(ctx context.Context, r *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	f.mu.Lock()
	f.lists++
	hold, answer, err := f.hold, &runtimeapi.ListContainersResponse{Containers: f.containers}, f.err
	if r.Filter != nil {
		answer.Containers = slices.DeleteFunc(slices.Clone(answer.Containers), func(c *runtimeapi.Container) bool { return c.State != r.Filter.State.State })
	}
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return answer, err
}

func (f *fakeRuntime) ListPodSandbox(_ context.Context, r *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.sandboxes
	if r.Filter != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(s *runtimeapi.PodSandbox) bool { return s.State != r.Filter.State.State })
	}
	return &runtimeapi.ListPodSandboxResponse{Items: list}, nil
}

func (f *fakeRuntime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream runtimeapi.RuntimeService_GetContainerEventsServer) error {
	f.mu.Lock()
	events, none := f.events, f.noEvents
	f.streams++
	f.mu.Unlock()
	if none {
		return status.Error(codes.Unimplemented, "not here")
	}
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return status.Error(codes.Unavailable, "going away")
			}
			if err := stream.Send(e); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// serve serves the runtime in memory and returns a client of it.
func serve(t testing.TB, f *fakeRuntime, change ...func(*Options)) *Client {
	t.Helper()
	if f.events == nil {
		f.events = make(chan *runtimeapi.ContainerEventResponse)
	}
	listener := memnet.Listen()
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	o := Options{Dial: func(ctx context.Context) (net.Conn, error) { return listener.DialContext(ctx) }}
	for _, how := range change {
		how(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}

// id is an id of one digit, 64 times.
func id(digit string) string { return strings.Repeat(digit, 64) }

func uid(digit string) string {
	d := func(n int) string { return strings.Repeat(digit, n) }
	return d(8) + "-" + d(4) + "-" + d(4) + "-" + d(4) + "-" + d(12)
}

// pod is a sandbox as the kubelet makes it, and one container in it.
func pod(sandbox, container string) (*runtimeapi.PodSandbox, *runtimeapi.Container) {
	name := "csi-" + container
	labels := func() map[string]string {
		return map[string]string{labelPod: name, labelNamespace: "storage", labelUID: uid(container), "app": "csi"}
	}
	s := &runtimeapi.PodSandbox{
		Id:       id(sandbox),
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "storage", Uid: uid(container)},
		State:    runtimeapi.PodSandboxState_SANDBOX_READY, Labels: labels(),
	}
	c := &runtimeapi.Container{
		Id: id(container), PodSandboxId: id(sandbox), Metadata: &runtimeapi.ContainerMetadata{Name: "driver"},
		Image: &runtimeapi.ImageSpec{Image: "sha256:" + id("0"), UserSpecifiedImage: "registry.example/driver:v1"},
		State: runtimeapi.ContainerState_CONTAINER_RUNNING, Labels: labels(),
	}
	c.Labels[labelContainer] = "driver"
	return s, c
}

func onePod() *fakeRuntime {
	s, c := pod("1", "a")
	return &fakeRuntime{containers: []*runtimeapi.Container{c}, sandboxes: []*runtimeapi.PodSandbox{s}}
}
