package cri

import (
	"fmt"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// addPods adds pods of one sandbox and some containers each, numbered from first.
func addPods(f *fakeRuntime, first, pods, containers int, state runtimeapi.ContainerState) {
	for p := first; p < first+pods; p++ {
		s, c := pod("1", "a")
		s.Id = fmt.Sprintf("%064x", 1_000_000+p)
		s.Metadata.Name, s.Metadata.Uid = fmt.Sprintf("pod-%d", p), fmt.Sprintf("00000000-0000-0000-0000-%012x", p)
		labels := map[string]string{labelPod: s.Metadata.Name, labelNamespace: "storage", labelUID: s.Metadata.Uid, labelContainer: "driver"}
		s.Labels = labels
		if state == runtimeapi.ContainerState_CONTAINER_EXITED {
			s.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		}
		f.sandboxes = append(f.sandboxes, s)
		for n := range containers {
			f.containers = append(f.containers, &runtimeapi.Container{
				Id: fmt.Sprintf("%064x", 2_000_000+p*1000+n), PodSandboxId: s.Id, Metadata: c.Metadata, Image: c.Image, State: state, Labels: labels,
			})
		}
	}
}

func TestContainersThatHaveEndedCostNoDriverItsIdentity(t *testing.T) {
	f := onePod()
	f.containers[0].State = runtimeapi.ContainerState_CONTAINER_CREATED // about to call
	addPods(f, 0, 41, 100, runtimeapi.ContainerState_CONTAINER_EXITED)
	c := serve(t, f)
	list, err := c.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if names(list) != "csi-a" || c.Status().Containers != 1 {
		t.Errorf("callers in %q are recognised", names(list))
	}
	if !strings.Contains(list.Gap, "have ended are left out") {
		t.Errorf("the gap is %q: a process in one of those that are left out would be the host's", list.Gap)
	}
	if c.Status().Listed.IsZero() {
		t.Error("a list with a gap does not count")
	}
}

func TestWhatTakesMoreThanAMessageCostsNoDriverItsIdentity(t *testing.T) {
	f := onePod()
	ended := &runtimeapi.Container{Id: id("e"), State: runtimeapi.ContainerState_CONTAINER_EXITED, Annotations: map[string]string{"x": strings.Repeat("x", maxMessage)}}
	f.containers = append(f.containers, ended)
	list, err := serve(t, f).Refresh(t.Context())
	if err != nil || names(list) != "csi-a" || list.Gap == "" {
		t.Errorf("got %q, gap %q, %v", names(list), list.Gap, err)
	}
}

func TestOfMoreRunningContainersThanTheBoundThoseThatWereKnownAreKept(t *testing.T) {
	f := &fakeRuntime{}
	addPods(f, 9000, 1, 1, runtimeapi.ContainerState_CONTAINER_RUNNING)
	f.sandboxes[0].Metadata.Name = "pod-9000"
	c := serve(t, f, func(o *Options) { o.Timeout = time.Minute }) // a busy machine takes long for thousands
	before, err := c.Refresh(t.Context())
	if err != nil || len(before.Candidates) != 2 {
		t.Fatalf("%d candidates, %v", len(before.Candidates), err)
	}
	s, driver := f.sandboxes[0], f.containers[0]
	f.change(func() {
		f.sandboxes, f.containers = nil, nil
		addPods(f, 0, 60, 100, runtimeapi.ContainerState_CONTAINER_RUNNING)
		f.sandboxes, f.containers = append(f.sandboxes, s), append(f.containers, driver)
	})
	after, err := c.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Candidates) != peer.MaxCandidates || after.Gap == "" {
		t.Errorf("%d candidates, gap %q", len(after.Candidates), after.Gap)
	}
	for _, known := range before.Candidates {
		if known.Fault == "" && after.Candidates[0] != known {
			t.Errorf("%+v was recognised before, and is not among the candidates first", known)
		}
	}
}
