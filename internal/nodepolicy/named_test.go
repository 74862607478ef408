package nodepolicy_test

import (
	"encoding/json"
	"io/fs"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	nodepolicies "github.com/pipeguard/pipeguard/policies/node"
)

// partitions says whether the default policy permits the caller of its example to partition a disk on a node with these objects.
func partitions(t *testing.T, l *nodepolicy.Live) bool {
	t.Helper()
	text, err := fs.ReadFile(nodepolicies.Examples(), "partition_disk/input.json")
	if err != nil {
		t.Fatal(err)
	}
	var example map[string]any
	if err := json.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	d := l.Decide(call("disk", "v1", "PartitionDisk", driver(func(c *caller.Caller) {
		c.Pod.ServiceAccount, c.Container.Name, c.Container.Image = "driver", "plugin", "registry.example/driver:1"
	})))
	example["named"] = d.Named
	input, err := policy.ToValue(example)
	if err != nil {
		t.Fatal(err)
	}
	judged, err := l.Engine.Decide(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	if d.Named && !d.Allowed {
		t.Errorf("named in a denial: %+v", d)
	}
	return d.Allowed && judged.Allowed
}

func likeANode(t *testing.T, clock *time.Time) nodepolicy.Options {
	t.Helper()
	o := options(clock)
	o.Modules, o.Policy = nodepolicy.Modules, nodepolicy.EngineOptions(policy.Options{BaseTested: true, Timeout: 20 * time.Second})
	return o
}

// The default policy refuses what is dangerous to whoever is not named; a PipePolicy that spells the method out names its subjects.
func TestASpelledOutMethodIsPermittedByTheDefaultPolicy(t *testing.T) {
	clock := now
	for name, c := range map[string]struct {
		change  func(*spec)
		allowed bool
	}{
		"spelled out":    {func(s *spec) { s.Node.Methods = []string{"PartitionDisk"} }, true},
		"all methods":    {func(*spec) {}, false},
		"another method": {func(s *spec) { s.Node.Methods = []string{"ListDiskIDs"} }, false},
		"another service account": {func(s *spec) {
			s.Node.Methods, s.Subjects[0].ServiceAccounts = []string{"PartitionDisk"}, []string{"other"}
		}, false},
		"every service account": {func(s *spec) { s.Node.Methods, s.Subjects[0].ServiceAccounts = []string{"PartitionDisk"}, nil }, false},
		"every service account of a container": {func(s *spec) {
			s.Node.Methods, s.Subjects[0].ServiceAccounts, s.Subjects[0].Containers = []string{"PartitionDisk"}, nil, []string{"plugin"}
		}, true},
		"every service account of another container": {func(s *spec) {
			s.Node.Methods, s.Subjects[0].ServiceAccounts, s.Subjects[0].Containers = []string{"PartitionDisk"}, nil, []string{"other"}
		}, false},
		"another container": {func(s *spec) { s.Node.Methods, s.Subjects[0].Containers = []string{"PartitionDisk"}, []string{"other"} }, false},
		"an image": {func(s *spec) {
			s.Node.Methods, s.Subjects[0].Images = []string{"PartitionDisk"}, []string{"registry.example/driver*"}
		}, true},
		"another image": {func(s *spec) {
			s.Node.Methods, s.Subjects[0].Images = []string{"PartitionDisk"}, []string{"registry.example/other*"}
		}, false},
		"every service account of an image": {func(s *spec) {
			s.Node.Methods, s.Subjects[0].ServiceAccounts, s.Subjects[0].Images = []string{"PartitionDisk"}, nil, []string{"registry.example/driver*"}
		}, false},
		"a pipe of the group": {func(s *spec) {
			s.Node.Methods, s.Pipes = []string{"PartitionDisk"}, []v1alpha1.PipePattern{"CSI-Proxy-Disk-v1"}
		}, true},
		"versions of the group": {func(s *spec) {
			s.Node.Methods, s.Pipes = []string{"PartitionDisk"}, []v1alpha1.PipePattern{"csi-proxy-disk-v1*"}
		}, true},
		"a group that is not spelled out": {func(s *spec) {
			s.Node.Methods, s.Pipes = []string{"PartitionDisk"}, []v1alpha1.PipePattern{"csi-proxy*"}
		}, false},
		"every group of the node API": {func(s *spec) {
			s.Node.Methods, s.Pipes = []string{"PartitionDisk"}, []v1alpha1.PipePattern{"csi-proxy-*"}
		}, false},
		"groups that begin like it": {func(s *spec) {
			s.Node.Methods, s.Pipes = []string{"PartitionDisk"}, []v1alpha1.PipePattern{"csi-proxy-disk*"}
		}, false},
		"another pipe of the group beside all": {func(s *spec) {
			s.Node.Methods, s.Pipes = []string{"PartitionDisk"}, []v1alpha1.PipePattern{"csi-proxy-disk-v1beta3", "csi-proxy*"}
		}, false},
		"the group beside all and a forwarded pipe": {func(s *spec) {
			s.Node.Methods, s.Pipes = []string{"PartitionDisk"}, []v1alpha1.PipePattern{"csi-proxy-disk-*", "csi-proxy*", "spire*"}
		}, true},
		// The methods of a policy with directories and no methods are made of what the node has.
		"all methods beside directories": {func(s *spec) { s.Node.PathPrefixes = []string{`C:\var\lib\kubelet`} }, false},
		"spelled out beside directories": {func(s *spec) {
			s.Node.Methods, s.Node.PathPrefixes = []string{"PartitionDisk"}, []string{`C:\var\lib\kubelet`}
		}, true},
		"a token that was not sent": {func(s *spec) { s.Node.Methods, s.Node.RequireToken = []string{"PartitionDisk"}, true }, false},
	} {
		l, err := nodepolicy.Try(t.Context(), likeANode(t, &clock), content(t, object("p", func(s *spec) { s.Subjects[0].ServiceAccounts = []string{"driver"} }, c.change)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := partitions(t, l); got != c.allowed {
			t.Errorf("%s: %t, want %t", name, got, c.allowed)
		}
	}
}

// A subject that names the caller decides before one that does not, whatever their policies are called: what the other permits is not its own.
func TestASubjectThatNamesDecides(t *testing.T) {
	clock := now
	l := live(t, &clock,
		object("a", func(s *spec) {
			s.Pipes = []v1alpha1.PipePattern{"csi-proxy*"}
			s.Subjects[0].Node.Permits = []v1alpha1.Permit{"SystemDisk"}
		}),
		object("b", func(s *spec) { s.Node.Methods = []string{"PartitionDisk"} }),
	)
	for operation, want := range map[string]string{"PartitionDisk": "b/node", "ListDiskIDs": "a/node"} {
		d := l.Decide(call("disk", "v1beta3", operation, driver()))
		if d.Rule != want || d.Named != (want == "b/node") || (len(d.Permits) > 0) == d.Named {
			t.Errorf("%s: %+v", operation, d)
		}
	}
}
