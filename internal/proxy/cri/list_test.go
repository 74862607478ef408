package cri

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

var (
	driver     = caller.Container{ID: id("a"), Name: "driver", Image: "registry.example/driver:v1"}
	driversPod = caller.Pod{Namespace: "storage", Name: "csi-a", UID: uid("a")}
)

func TestCandidatesNameNobodyByAnAnswerThatDoesNotHold(t *testing.T) {
	type node struct {
		s *runtimeapi.PodSandbox
		c *runtimeapi.Container
		f *fakeRuntime
	}
	both := func(label, value string) func(node) {
		return func(n node) { n.s.Labels[label], n.c.Labels[label] = value, value }
	}
	tests := []struct {
		name   string
		change func(node)
		want   string
	}{
		{"no sandbox", func(n node) { n.f.sandboxes = nil }, "no sandbox"},
		{"another sandbox", func(n node) { n.c.PodSandboxId = id("2") }, "no sandbox"},
		{"a sandbox without an id", func(n node) { n.c.PodSandboxId = "" }, "no sandbox"},
		{"itself as its sandbox", func(n node) { n.c.PodSandboxId = n.c.Id }, "no sandbox"},
		{"a container's labels of another pod", func(n node) { n.c.Labels[labelPod] = "csi-b" }, "another pod's"},
		{"a container's labels of another namespace", func(n node) { n.c.Labels[labelNamespace] = "kube-system" }, "another pod's"},
		{"a container's labels of another uid", func(n node) { n.c.Labels[labelUID] = uid("b") }, "another pod's"},
		{"a container without labels", func(n node) { n.c.Labels = nil }, "another pod's"},
		{"a container whose name is another's", func(n node) { n.c.Labels[labelContainer] = "sidecar" }, "another container's"},
		{"a container without metadata", func(n node) { n.c.Metadata = nil }, "its name is"},
		{"a container with a path for a name", func(n node) { n.c.Metadata.Name, n.c.Labels[labelContainer] = "a/b", "a/b" }, "its name is"},
		{"a container with a long name", func(n node) {
			n.c.Metadata.Name = strings.Repeat("a", 64)
			n.c.Labels[labelContainer] = n.c.Metadata.Name
		}, "its name is"},
		{"a sandbox's labels of another pod", func(n node) { n.s.Labels[labelPod] = "csi-b" }, "sandbox are another"},
		{"a sandbox's labels of another namespace", func(n node) { n.s.Labels[labelNamespace] = "kube-system" }, "sandbox are another"},
		{"a sandbox's labels of another uid", func(n node) { n.s.Labels[labelUID] = uid("b") }, "sandbox are another"},
		{"labels that agree with each other alone", both(labelNamespace, "kube-system"), "sandbox are another"},
		{"a sandbox without labels", func(n node) { n.s.Labels = nil }, "sandbox are another"},
		{"a sandbox without metadata", func(n node) { n.s.Metadata = nil }, "uid of its pod"},
		{"a uid of another form", func(n node) { n.s.Metadata.Uid = "1"; both(labelUID, "1")(n) }, "uid of its pod"},
		{"a uid in capital letters", func(n node) { n.s.Metadata.Uid = strings.ToUpper(uid("a")); both(labelUID, n.s.Metadata.Uid)(n) }, "uid of its pod"},
		{"a uid that goes on", func(n node) { n.s.Metadata.Uid += "a"; both(labelUID, n.s.Metadata.Uid)(n) }, "uid of its pod"},
		{"no uid", func(n node) { n.s.Metadata.Uid = ""; both(labelUID, "")(n) }, "uid of its pod"},
		{"no namespace", func(n node) { n.s.Metadata.Namespace = ""; both(labelNamespace, "")(n) }, "namespace of its pod"},
		{"two names in a namespace", func(n node) { n.s.Metadata.Namespace = "a/b"; both(labelNamespace, "a/b")(n) }, "namespace of its pod"},
		{"a namespace with a dot", func(n node) { n.s.Metadata.Namespace = "a.b"; both(labelNamespace, "a.b")(n) }, "namespace of its pod"},
		{"a pod without a name", func(n node) { n.s.Metadata.Name = ""; both(labelPod, "")(n) }, "name of its pod"},
		{"a pod with a line for a name", func(n node) { n.s.Metadata.Name = "a\nb"; both(labelPod, "a\nb")(n) }, "name of its pod"},
		{"a pod with a capital letter", func(n node) { n.s.Metadata.Name = "Csi"; both(labelPod, "Csi")(n) }, "name of its pod"},
		{"a pod with a long name", func(n node) {
			n.s.Metadata.Name = strings.Repeat("a", 254)
			both(labelPod, n.s.Metadata.Name)(n)
		}, "name of its pod"},
		{"an image with a space", func(n node) { n.c.Image.UserSpecifiedImage = "a b" }, "its image"},
		{"an image beyond letters", func(n node) { n.c.Image.UserSpecifiedImage = "régistry/x" }, "its image"},
		{"an image without end", func(n node) { n.c.Image.UserSpecifiedImage = strings.Repeat("a", maxImage+1) }, "its image"},
		{"a container that has ended", func(n node) { n.c.State = runtimeapi.ContainerState_CONTAINER_EXITED }, "has ended"},
		{"a container of no known state", func(n node) { n.c.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN }, "know its state"},
		{"a container of a new state", func(n node) { n.c.State = 17 }, "know its state"},
		{"two pods of one uid", func(n node) {
			s, _ := pod("2", "b")
			s.Metadata.Uid, s.Labels[labelUID] = uid("a"), uid("a")
			n.f.sandboxes = append(n.f.sandboxes, s)
		}, "two pods"},
		{"two pods of one uid, the other one first", func(n node) {
			s, _ := pod("2", "b")
			s.Metadata.Uid, s.Labels[labelUID] = uid("a"), uid("a")
			n.f.sandboxes = []*runtimeapi.PodSandbox{s, n.s}
		}, "two pods"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := onePod()
			test.change(node{f.sandboxes[0], f.containers[0], f})
			list, gap := candidates(f.containers, f.sandboxes)
			if gap != "" {
				t.Errorf("the list has a gap: %s", gap)
			}
			found := false
			for _, c := range list {
				if c.Pod != (caller.Pod{}) || c.Container != (caller.Container{ID: c.Container.ID}) || c.Fault == "" {
					t.Errorf("somebody can be taken for %+v", c)
				}
				if c.Container.ID == id("a") {
					found = strings.Contains(c.Fault, test.want)
				}
			}
			if !found {
				t.Errorf("%+v does not say %q of the container", list, test.want)
			}
		})
	}
}

func TestAnIDThatIsListedTwiceIsNobodysAndHurtsNoOther(t *testing.T) {
	tests := []struct {
		name   string
		change func(*fakeRuntime)
		ids    []string // whose callers are refused
	}{
		{"two containers of one id", func(f *fakeRuntime) { f.containers = append(f.containers, f.containers[0]) }, []string{id("a")}},
		{"three of one id", func(f *fakeRuntime) { f.containers = append(f.containers, f.containers[0], f.containers[0]) }, []string{id("a")}},
		{"two sandboxes of one id", func(f *fakeRuntime) { f.sandboxes = append(f.sandboxes, f.sandboxes[0]) }, []string{id("1"), id("a")}},
		{"a container with the id of its sandbox", func(f *fakeRuntime) { f.containers[0].Id = f.sandboxes[0].Id }, []string{id("1")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := onePod()
			test.change(f)
			s, c := pod("2", "b")
			list, gap := candidates(append(f.containers, c), append(f.sandboxes, s))
			if gap != "" {
				t.Errorf("the list has a gap: %s", gap)
			}
			seen := map[string]peer.Candidate{}
			for _, c := range list {
				if _, ok := seen[c.Container.ID]; ok {
					t.Errorf("%s is listed twice", c.Container.ID)
				}
				seen[c.Container.ID] = c
			}
			for _, id := range test.ids {
				if c := seen[id]; !strings.Contains(c.Fault, "twice") || c.Pod != (caller.Pod{}) {
					t.Errorf("somebody can be taken for %+v", c)
				}
			}
			if other := seen[id("b")]; other.Fault != "" || other.Pod.Name != "csi-b" {
				t.Errorf("the other container is %+v", other)
			}
		})
	}
}

func TestAContainerWithoutAnIDToAskForIsAGapAndHurtsNoOther(t *testing.T) {
	tests := []struct {
		name   string
		change func(*fakeRuntime)
	}{
		{"no id", func(f *fakeRuntime) { f.containers[0].Id = "" }},
		{"a short id", func(f *fakeRuntime) { f.containers[0].Id = id("a")[1:] }},
		{"an id that goes on", func(f *fakeRuntime) { f.containers[0].Id += "a" }},
		{"an id with a backslash", func(f *fakeRuntime) { f.containers[0].Id = `..\` + id("a")[3:] }},
		{"an id in capital letters", func(f *fakeRuntime) { f.containers[0].Id = strings.ToUpper(id("a")) }},
		{"a sandbox with a path for an id", func(f *fakeRuntime) { f.sandboxes[0].Id = "../" + id("a")[3:] }},
		{"an empty container", func(f *fakeRuntime) { f.containers = append(f.containers, nil) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := onePod()
			test.change(f)
			s, c := pod("2", "b")
			list, gap := candidates(append(f.containers, c), append(f.sandboxes, s))
			if !strings.Contains(gap, "the id") {
				t.Errorf("the gap is %q", gap)
			}
			if got := names(peer.List{Candidates: list}); got != "csi-b" && got != "csi-a csi-b" {
				t.Errorf("callers in %q are recognised", got)
			}
		})
	}
}

func TestCandidatesNameThePod(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *runtimeapi.PodSandbox, c *runtimeapi.Container)
		want   func(*peer.Candidate)
	}{
		{"a running container", func(*runtimeapi.PodSandbox, *runtimeapi.Container) {}, func(*peer.Candidate) {}},
		{"a container that is being started", func(_ *runtimeapi.PodSandbox, c *runtimeapi.Container) {
			c.State = runtimeapi.ContainerState_CONTAINER_CREATED
		}, func(*peer.Candidate) {}},
		{"a kubelet that names images alone", func(_ *runtimeapi.PodSandbox, c *runtimeapi.Container) { c.Image.UserSpecifiedImage = "" },
			func(c *peer.Candidate) { c.Container.Image = "sha256:" + id("0") }},
		{"a static pod", func(s *runtimeapi.PodSandbox, c *runtimeapi.Container) {
			s.Metadata.Uid = id("7")[:32]
			s.Labels[labelUID], c.Labels[labelUID] = s.Metadata.Uid, s.Metadata.Uid
		}, func(c *peer.Candidate) { c.Pod.UID = id("7")[:32] }},
		{"annotations, which a pod's author writes", func(s *runtimeapi.PodSandbox, c *runtimeapi.Container) {
			lies := map[string]string{labelNamespace: "kube-system", "microsoft.com/hostprocess-container": "true"}
			s.Annotations, c.Annotations = lies, lies
		}, func(*peer.Candidate) {}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := onePod()
			test.change(f.sandboxes[0], f.containers[0])
			list, gap := candidates(f.containers, f.sandboxes)
			if gap != "" {
				t.Errorf("the list has a gap: %s", gap)
			}
			want := peer.Candidate{Container: driver, Pod: driversPod}
			test.want(&want)
			if diff := cmp.Diff([]peer.Candidate{{Container: caller.Container{ID: id("1")}, Fault: "it is the sandbox of a pod"}, want}, list); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCandidatesKeepTwoPodsApart(t *testing.T) {
	s1, c1 := pod("1", "a")
	s2, c2 := pod("2", "b")
	c2.Labels[labelUID] = uid("a") // and the fault of one is not the other's
	list, _ := candidates([]*runtimeapi.Container{c2, c1}, []*runtimeapi.PodSandbox{s1, s2})
	if list[2].Container.ID != id("b") || list[2].Fault == "" || list[3] != (peer.Candidate{Container: driver, Pod: driversPod}) {
		t.Errorf("got %+v", list)
	}
}
