//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/e2e/cluster"
	"github.com/pipeguard/pipeguard/test/harness"
)

// storage is the namespace of the pods that call, and inventory the service account that the policy names first.
const (
	storage   = "storage"
	inventory = "inventory"
	stranger  = "stranger"
)

// diskInventory is the one policy of the chapter; what stands in place of %s changes.
const diskInventory = `apiVersion: pipeguard.dev/v1alpha1
kind: PipePolicy
metadata: {name: disk-inventory}
spec:
  pipes: ["csi-proxy-disk-*"]
  node: %s
  subjects:
    - {name: counts, namespace: storage, serviceAccounts: [%s], containers: [main]}
`

// onePolicyDecidesAtBothEnds applies one PipePolicy, and sees it refuse a pod at admission and a pod's call on the node, each
// time with its name and the same revision; and after a change, the next revision.
func onePolicyDecidesAtBothEnds(t *testing.T) {
	namespace(t, storage, inventory, stranger)
	n := guardNode(t)
	named, sidecar := n.pod(t, "named", inventory)
	other, _ := n.pod(t, "other", stranger)

	t.Cleanup(func() { forgetPolicy(t) })
	first := n.apply(t, fmt.Sprintf(diskInventory, "{methods: [ListDiskIDs]}", inventory))
	const rule = "disk-inventory/counts"

	t.Run("admission", func(t *testing.T) {
		mustRefuse(t, pod(storage, "evil", as(stranger, "main"), mounts(diskPipe), onWindows), "disk-inventory", first.short())
		mustAdmit(t, pod(storage, "good", as(inventory, "main"), mounts(diskPipe), onWindows))
	})
	t.Run("the pod that is named is served", func(t *testing.T) {
		n.mustServe(t, named, "ListDiskIDs", "{}")
		n.recorded(t, named, audit.Decision{Effect: audit.EffectAllow, Rule: rule, Policy: first.record()})
	})
	t.Run("it is served what the policy names, and no more", func(t *testing.T) {
		n.mustDeny(t, named, "ListDiskLocations", "{}", "PipePolicy disk-inventory", first.short(), first.number())
		n.recorded(t, named, audit.Decision{Effect: audit.EffectDeny, Policy: first.record()})
	})
	t.Run("a pod that is not named is refused by the same policy and revision", func(t *testing.T) {
		n.mustDeny(t, other, "ListDiskIDs", "{}", "PipePolicy disk-inventory", first.short(), first.number())
		n.recorded(t, other, audit.Decision{Effect: audit.EffectDeny, Policy: first.record()})
	})
	t.Run("so is another container of the pod that is named", func(t *testing.T) {
		n.mustDeny(t, sidecar, "ListDiskIDs", "{}", "PipePolicy disk-inventory", first.short(), first.number())
		n.recorded(t, sidecar, audit.Decision{Effect: audit.EffectDeny, Policy: first.record()})
	})
	t.Run("a program of the node is no pod", func(t *testing.T) {
		out, err := n.callFromNode(t, "ListDiskIDs")
		if err == nil || !strings.Contains(out, "PermissionDenied") || !strings.Contains(out, "PipePolicy disk-inventory") {
			t.Errorf("it is %q, %v, want a denial by the policy", out, err)
		}
	})
	t.Run("its status says where it decides", func(t *testing.T) {
		harness.Eventually(t, readyLimit, "the node is counted", func(ctx context.Context) error {
			p, err := readPolicy(ctx)
			if err == nil && (p.Status.Nodes == nil || p.Status.Nodes.Summary != "1/1") {
				err = fmt.Errorf("nodes: %+v", p.Status.Nodes)
			}
			return err
		})
	})
	t.Run("the cluster says which pipes the node serves", theClusterSaysWhichPipesTheNodeServes)

	// Every method for both: only what the default request policy refuses to whoever is not named is left.
	second := n.apply(t, fmt.Sprintf(diskInventory, "{}", inventory+", "+stranger))
	if first.policy == second.policy || second.bundle <= first.bundle {
		t.Errorf("the next revisions are %+v, those before were %+v", second, first)
	}
	t.Run("after a change both ends decide by the next revision", func(t *testing.T) {
		mustAdmit(t, pod(storage, "not-evil", as(stranger, "main"), mounts(diskPipe), onWindows))
		n.mustServe(t, other, "ListDiskIDs", "{}")
		n.recorded(t, other, audit.Decision{Effect: audit.EffectAllow, Rule: rule, Policy: second.record()})
		if starts := n.starts(t); starts != 1 {
			t.Errorf("the proxy was started %d times", starts)
		}
	})
	t.Run("partitioning is for whoever is named for it", func(t *testing.T) {
		n.mustDeny(t, other, "PartitionDisk", `{"disk_number": 1}`, "PN002")
		n.recorded(t, other, audit.Decision{Effect: audit.EffectDeny, Rule: "PN002", Policy: &audit.Policy{Name: "request"}})
	})
	third := n.apply(t, fmt.Sprintf(diskInventory, "{methods: [PartitionDisk, ListDiskIDs]}", stranger))
	t.Run("and whoever the policy names for it may", func(t *testing.T) {
		n.mustServe(t, other, "PartitionDisk", `{"disk_number": 1}`)
		n.recorded(t, other, audit.Decision{Effect: audit.EffectAllow, Rule: rule, Policy: third.record()})
		n.mustDeny(t, named, "ListDiskIDs", "{}", third.short(), third.number())
	})
	t.Run("a node that starts again without the webhook decides by what it kept", func(t *testing.T) {
		n.cutOff(t)
		n.mustServe(t, other, "ListDiskIDs", "{}")
		n.recorded(t, other, audit.Decision{Effect: audit.EffectAllow, Rule: rule, Policy: third.record()})
		n.mustDeny(t, named, "ListDiskIDs", "{}", third.short(), third.number())
	})
	t.Run("an audit log that is put back to an older state is found", func(t *testing.T) { putBackLogIsFound(t, n) })
}

// recorded checks the last record with a decision about a pod: who called, proven how, and what decided. Of a policy without a
// revision only the name is compared: nobody else tells that revision.
func (n *guardedNode) recorded(t *testing.T, c caller, want audit.Decision) {
	t.Helper()
	var last *audit.Event
	for _, e := range n.records(t) {
		if e.Decision != nil && e.Who != nil && e.Who.Pod != nil && e.Who.Pod.Name == c.pod && e.Who.Container != nil && e.Who.Container.Name == c.container {
			last = &e
		}
	}
	if last == nil {
		t.Errorf("no record names container %s of pod %s", c.container, c.pod)
		return
	}
	who, d := last.Who, last.Decision
	if who.Assurance != "pod" || who.Pod.Namespace != storage || who.Pod.UID != c.uid || who.Pod.ServiceAccount != c.account ||
		who.Container.ID != c.id || who.Container.Image != cluster.ProgramImage {
		t.Errorf("the record says of the caller %+v, pod %+v, container %+v, want %+v", who, who.Pod, who.Container, c)
	}
	if d.Effect != want.Effect || d.Rule != want.Rule || d.Mode != "Enforce" || d.Policy == nil || d.Policy.Name != want.Policy.Name ||
		want.Policy.Revision != "" && *d.Policy != *want.Policy {
		t.Errorf("the record says of the decision %+v by %+v, want %+v by %+v", d, d.Policy, want, want.Policy)
	}
	if last.Where == nil || last.Where.Node != cluster.NodeName {
		t.Errorf("the record is of %+v, want node %s", last.Where, cluster.NodeName)
	}
}
