package node

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policy"
	nodepolicies "github.com/pipeguard/pipeguard/policies/node"
)

// The default policy refuses what is dangerous to whoever is not named; a PipePolicy that spells the method out names its subjects.
func TestASpelledOutMethodIsPermittedByTheDefaultPolicy(t *testing.T) {
	clock := now
	builtIn, err := policy.LoadFS(nodepolicies.FS())
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(nodepolicies.Examples(), "partition_disk/input.json")
	if err != nil {
		t.Fatal(err)
	}
	var example any
	if err := json.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	input, err := policy.ToValue(example)
	if err != nil {
		t.Fatal(err)
	}
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
		"a group that is not spelled out": {func(s *spec) {
			s.Node.Methods, s.Pipes = []string{"PartitionDisk"}, []v1alpha1.PipePattern{"csi-proxy*"}
		}, false},
	} {
		o := options(&clock)
		o.Modules = over(builtIn.Files)
		l, err := Try(t.Context(), o, content(t, object("p", func(s *spec) { s.Subjects[0].ServiceAccounts = []string{"driver"} }, c.change)))
		if err != nil {
			t.Fatal(err)
		}
		if d, err := l.Engine.Decide(t.Context(), input); err != nil || d.Allowed != c.allowed {
			t.Errorf("%s: %+v, %v, want %t", name, d, err, c.allowed)
		}
	}
}
