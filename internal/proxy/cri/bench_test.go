package cri

import (
	"fmt"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// BenchmarkRefresh is a list of a full node (110 pods of two containers) over the real protocol, in memory.
func BenchmarkRefresh(b *testing.B) {
	f := &fakeRuntime{}
	for i := range 110 {
		s, c := pod("1", "a")
		s.Id, c.PodSandboxId = fmt.Sprintf("%064x", i), fmt.Sprintf("%064x", i)
		name, uid := fmt.Sprintf("pod-%d", i), fmt.Sprintf("00000000-0000-0000-0000-%012x", i)
		s.Metadata.Name, s.Metadata.Uid = name, uid
		s.Labels[labelPod], s.Labels[labelUID], c.Labels[labelPod], c.Labels[labelUID] = name, uid, name, uid
		f.sandboxes = append(f.sandboxes, s)
		for j := range 2 {
			f.containers = append(f.containers, &runtimeapi.Container{
				Id: fmt.Sprintf("%064x", 1000+2*i+j), PodSandboxId: c.PodSandboxId, Metadata: c.Metadata, Image: c.Image, State: c.State, Labels: c.Labels,
			})
		}
	}
	c := serve(b, f)
	b.ReportAllocs()
	for b.Loop() {
		list, err := c.Refresh(b.Context())
		if err != nil || len(list.Candidates) != 330 || c.Status().Containers != 220 {
			b.Fatalf("%d listed, %d known, %v", len(list.Candidates), c.Status().Containers, err)
		}
	}
}
