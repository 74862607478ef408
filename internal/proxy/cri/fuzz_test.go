package cri

import (
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func FuzzCandidatesNameOnlyWhatAgrees(f *testing.F) {
	for _, r := range []*fakeRuntime{{}, onePod()} {
		c, err := proto.Marshal(&runtimeapi.ListContainersResponse{Containers: r.containers})
		if err != nil {
			f.Fatal(err)
		}
		s, err := proto.Marshal(&runtimeapi.ListPodSandboxResponse{Items: r.sandboxes})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(c, s)
	}
	f.Fuzz(func(t *testing.T, c, s []byte) {
		var containers runtimeapi.ListContainersResponse
		var sandboxes runtimeapi.ListPodSandboxResponse
		if proto.Unmarshal(c, &containers) != nil || proto.Unmarshal(s, &sandboxes) != nil {
			return
		}
		list, _ := candidates(containers.GetContainers(), sandboxes.GetItems())
		seen := map[string]bool{}
		for _, c := range list {
			if seen[c.Container.ID] || !isID(c.Container.ID) {
				t.Errorf("id %q", c.Container.ID)
			}
			seen[c.Container.ID] = true
			if c.Fault == "" && (!isUID(c.Pod.UID) || !caller.IsLabel(c.Pod.Namespace) || !caller.IsSubdomain(c.Pod.Name) || !caller.IsLabel(c.Container.Name)) {
				t.Errorf("somebody can be taken for %+v", c)
			}
		}
	})
}
