package cri

import (
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// candidates puts together what the runtime lists. Where the description of a container does not hold, or two have one id, the
// container stays in the list with a fault, so that a process in it is not taken for another caller. A container without a usable id is
// left out, and the gap says so.
func candidates(containers []*runtimeapi.Container, sandboxes []*runtimeapi.PodSandbox) (list []peer.Candidate, gap string) {
	list = make([]peer.Candidate, 0, len(containers)+len(sandboxes))
	at := make(map[string]int, len(containers)+len(sandboxes))
	add := func(c peer.Candidate) {
		id := c.Container.ID
		if !isID(id) {
			gap = fmt.Sprintf("the runtime lists a container with the id %.100q", id)
			return
		}
		if i, ok := at[id]; ok {
			list[i] = peer.Candidate{Container: caller.Container{ID: id}, Fault: "the runtime lists its id twice"}
			return
		}
		at[id] = len(list)
		list = append(list, c)
	}
	pods := newPods()
	for _, s := range sandboxes {
		pods.add(s)
		// The sandbox has a process of its own, which has no business here.
		add(peer.Candidate{Container: caller.Container{ID: s.GetId()}, Fault: "it is the sandbox of a pod"})
	}
	for _, c := range containers {
		add(pods.candidate(c))
	}
	return list, gap
}

// pods are the pods of the listed sandboxes.
type pods struct {
	sandboxes map[string]peer.Candidate // by sandbox id; the container is empty
	uids      map[string]caller.Pod
	torn      map[string]bool // uids of which two pods make use
}

func newPods() *pods {
	return &pods{sandboxes: map[string]peer.Candidate{}, uids: map[string]caller.Pod{}, torn: map[string]bool{}}
}

func (p *pods) add(s *runtimeapi.PodSandbox) {
	meta, labels := s.GetMetadata(), s.GetLabels()
	pod := caller.Pod{Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUid()}
	c := peer.Candidate{Pod: pod}
	switch {
	case !isUID(pod.UID):
		c.Fault = fmt.Sprintf("the uid of its pod is %.100q", pod.UID)
	case !caller.IsLabel(pod.Namespace):
		c.Fault = fmt.Sprintf("the namespace of its pod is %.100q", pod.Namespace)
	case !caller.IsSubdomain(pod.Name):
		c.Fault = fmt.Sprintf("the name of its pod is %.300q", pod.Name)
	case !agree(labels, pod):
		c.Fault = "the labels of its sandbox are another pod's"
	}
	if _, ok := p.sandboxes[s.GetId()]; ok {
		c.Fault = "the runtime lists its sandbox twice"
	}
	p.sandboxes[s.GetId()] = c
	if before, ok := p.uids[pod.UID]; ok && before != pod {
		p.torn[pod.UID] = true
	}
	p.uids[pod.UID] = pod
}

func agree(labels map[string]string, pod caller.Pod) bool {
	return labels[labelUID] == pod.UID && labels[labelNamespace] == pod.Namespace && labels[labelPod] == pod.Name
}

// candidate describes a container. Its name and pod are told more than once, and have to be the same each time.
func (p *pods) candidate(c *runtimeapi.Container) peer.Candidate {
	image := imageOf(c.GetImage())
	found := peer.Candidate{Container: caller.Container{ID: c.GetId()}}
	sandbox, ok := p.sandboxes[c.GetPodSandboxId()]
	labels, name := c.GetLabels(), c.GetMetadata().GetName()
	switch state := c.GetState(); {
	case !ok:
		found.Fault = "the runtime lists no sandbox of it"
	case sandbox.Fault != "":
		found.Fault = sandbox.Fault
	case p.torn[sandbox.Pod.UID]:
		found.Fault = "the runtime lists two pods with the uid of its own"
	case !agree(labels, sandbox.Pod):
		found.Fault = "its labels are another pod's"
	case !caller.IsLabel(name):
		found.Fault = fmt.Sprintf("its name is %.100q", name)
	case labels[labelContainer] != name:
		found.Fault = "its labels are another container's"
	case !isImage(image):
		found.Fault = fmt.Sprintf("its image is %.100q", image)
	case state == runtimeapi.ContainerState_CONTAINER_EXITED:
		found.Fault = "it has ended"
	case state != runtimeapi.ContainerState_CONTAINER_RUNNING && state != runtimeapi.ContainerState_CONTAINER_CREATED:
		// A container counts as created until its first process has been started, and that may already call.
		found.Fault = "the runtime does not know its state"
	default:
		found.Container.Name, found.Container.Image, found.Pod = name, image, sandbox.Pod
	}
	return found
}
