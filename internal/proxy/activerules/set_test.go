package activerules

import (
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/test/bundletest"
)

// Which pipes the cluster guards is not known then, so that none is open: not those of the node's own rules, not those that
// these only watch, and not forwarded ones.
func TestWithoutAValidBundleEveryPipeIsShut(t *testing.T) {
	refusedBy := func(m *machine, raw []byte) {
		if _, err := m.keeper.Offer(m.t.Context(), raw); err == nil {
			m.t.Fatal("taken")
		}
	}
	for name, c := range map[string]struct {
		how    func(*machine)
		reason string
	}{
		"none was ever offered":    {func(*machine) {}, "there is none that may be used"},
		"one of another key":       {func(m *machine) { refusedBy(m, m.archive(7, bundletest.NewKey(m.t), object("azuredisk"))) }, "there is none that may be used"},
		"half of one":              {func(m *machine) { raw := m.archive(7, m.key, object("azuredisk")); refusedBy(m, raw[:len(raw)/2]) }, "there is none that may be used"},
		"its time is over":         {func(m *machine) { m.offer(7); m.set(issued.Add(24 * time.Hour)) }, "revision 7 ended"},
		"its time was over once":   {func(m *machine) { m.offer(7); m.set(issued.Add(25 * time.Hour)); _ = m.keeper.Valid(); m.set(issued) }, "revision 7 ended"},
		"its time has not begun":   {func(m *machine) { m.offer(7); m.set(issued.Add(-time.Hour)) }, "was issued at"},
		"its key is not pinned":    {func(m *machine) { m.offer(7); m.pin(bundletest.NewKey(m.t)) }, "there is none that may be used"},
		"a start with another key": {func(m *machine) { m.offer(7); m.restart(bundletest.NewKey(m.t)) }, "there is none that may be used"},
		"a start after its end":    {func(m *machine) { m.offer(7); m.set(issued.Add(48 * time.Hour)); m.restart(m.key) }, "there is none that may be used"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.t = t
			c.how(m)
			if m.rules.Valid() == nil {
				t.Error("the node calls itself ready")
			}
			for _, api := range m.known {
				rules := m.rules.Rules(api.Group, api.Version)
				if rules.Policy.Name != BundlePolicy {
					t.Errorf("%s-%s: records name %+v", api.Group, api.Version, rules.Policy)
				}
				for _, operation := range append([]string{"/a.B/C", "Mkdir"}, api.Operations...) {
					for _, who := range []caller.Caller{ours, theirs, {}} {
						d := rules.List.Decide(access.Call{Group: api.Group, Version: api.Version, Operation: operation, Caller: who})
						if d.Allowed || d.Effect != access.Deny || d.Mode != access.Enforce || !strings.Contains(d.Reason, c.reason) {
							t.Fatalf("%s of %s-%s: %+v", operation, api.Group, api.Version, d)
						}
					}
					if rules.List.Names(api.Group, api.Version, operation) {
						t.Errorf("%s has a series of its own", operation)
					}
				}
			}
		})
	}
}

func (m *machine) pin(keys ...*bundle.Key) {
	m.t.Helper()
	var text []byte
	for _, k := range keys {
		text = append(text, k.PublicPEM()...)
	}
	parsed, err := bundle.ParseKeys(text)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.keeper.Pin(parsed); err != nil {
		m.t.Fatal(err)
	}
}

func TestAGuardedPipeIsTheClustersAlone(t *testing.T) {
	m := newMachine(t)
	m.offer(7)
	for _, c := range []struct {
		name, group, version, operation string
		who                             caller.Caller
		allowed                         bool
		rule, policy                    string
	}{
		{"whom the cluster names", "disk", "v1", "ListDiskIDs", theirs, true, "azuredisk/node", BundlePolicy},
		{"by an older version too", "disk", "v1beta2", "ListDiskIDs", theirs, true, "azuredisk/node", BundlePolicy},
		{"whom the node alone names, on a pipe that it would only watch", "disk", "v1", "ListDiskIDs", ours, false, "", BundlePolicy},
		{"nobody", "disk", "v1", "ListDiskIDs", caller.Caller{}, false, "", BundlePolicy},
		{"a forwarded pipe, whom the cluster names", front, "", "/a.B/C", theirs, true, "azuredisk/node", BundlePolicy},
		{"a forwarded pipe, whom the node alone names", front, "", "/a.B/C", ours, false, "", BundlePolicy},
		{"a pipe that no policy guards, whom the node names", "filesystem", "v1", "Mkdir", ours, true, "agent", "acl"},
		{"a pipe that no policy guards, whom the cluster names elsewhere", "filesystem", "v1", "Mkdir", theirs, false, "", "acl"},
		{"another forwarded pipe, whom the node names", back, "", "/a.B/C", ours, true, "forwarded", "acl"},
		{"a pipe that nobody has", "nothing", "v1", "Mkdir", theirs, false, "", "acl"},
		{"system, which is not spelled out", "system", "v1alpha1", "StopService", theirs, false, "", "acl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := m.rules.Rules(c.group, c.version)
			d := m.ask(c.group, c.version, c.operation, c.who)
			if d.Allowed != c.allowed || d.Rule != c.rule || rules.Policy.Name != c.policy {
				t.Errorf("%+v by %+v", d, rules.Policy)
			}
			if c.policy == BundlePolicy && (rules.Policy.Revision != policyRevision || rules.Policy.Bundle != 7 || rules.RequestPolicy == nil || rules.HasRoles) {
				t.Errorf("rules %+v by %+v", rules, rules.Policy)
			}
			if !c.allowed && c.policy == BundlePolicy {
				for _, want := range []string{"PipePolicy azuredisk", "policy sha256:0123456789ab", "revision 7"} {
					if !strings.Contains(d.Reason, want) {
						t.Errorf("%q does not say %q", d.Reason, want)
					}
				}
			}
		})
	}
}

// A policy that allows nobody shuts its pipes; one that guards system by a wide pattern opens nothing there.
func TestAPolicyGuardsWhatItOpensToNobody(t *testing.T) {
	m := newMachine(t)
	m.offer(7, object("all", func(s *spec) {
		s.Pipes, s.Node.Action = []v1alpha1.PipePattern{"csi-proxy*"}, v1alpha1.NodeLogOnly
	}), object("nobody", func(s *spec) { s.Pipes, s.Subjects = []v1alpha1.PipePattern{"back"}, nil }))
	for _, c := range []struct {
		group, version, operation string
		who                       caller.Caller
		allowed                   bool
		mode                      access.Mode
	}{
		{"filesystem", "v1", "Mkdir", theirs, true, access.LogOnly},
		{"filesystem", "v1", "Mkdir", caller.Caller{}, true, access.LogOnly}, // it is only watched
		{"system", "v1alpha1", "StopService", theirs, false, access.Enforce},
		{"iscsi", "v1alpha2", "ConnectTarget", theirs, false, access.Enforce},
		{back, "", "/a.B/C", ours, false, access.Enforce},
		{back, "", "/a.B/C", theirs, false, access.Enforce},
		{front, "", "/a.B/C", ours, true, access.LogOnly}, // the node's own
	} {
		if d := m.ask(c.group, c.version, c.operation, c.who); d.Allowed != c.allowed || d.Mode != c.mode {
			t.Errorf("%s on %s: %+v", c.operation, c.group, d)
		}
	}
}

func TestWithoutBundlesTheNodeDecides(t *testing.T) {
	b := New(nil)
	if b.Rules("filesystem", "v1") != nil || b.Local() != nil { // the server denies then
		t.Error("rules before there are any")
	}
	b.Use(local(t))
	if r := b.Rules("disk", "v1"); r.Policy.Name != "acl" || b.Bundle() != nil || b.Valid() != nil {
		t.Errorf("%+v", r)
	}
	m := newMachine(t)
	m.rules = New(&Bundles{Keeper: m.keeper, Node: nodepolicy.New(nodepolicy.Options{})})
	m.offer(7) // taken, and not by the node that is asked
	if d := m.ask("filesystem", "v1", "Mkdir", ours); d.Allowed || !strings.Contains(d.Reason, "no bundle decides yet") {
		t.Errorf("%+v", d)
	}
}

// What a connection holds of its caller's standing belongs to one Rules.
func TestTheEndOfAPermissionMakesOtherRules(t *testing.T) {
	m := newMachine(t)
	ends := metav1.NewTime(issued.Add(2 * time.Hour))
	m.offer(7, object("azuredisk", func(s *spec) {
		s.Subjects[0].ExpiresAt, s.Subjects[0].Owner, s.Subjects[0].Reason = &ends, "o", "r"
	}))
	before := m.rules.Rules("disk", "v1")
	m.set(ends.Add(-time.Second))
	if m.rules.Rules("disk", "v1") != before || !before.List.Admits("disk", "v1", theirs) {
		t.Error("other rules before the end")
	}
	m.set(ends.Time)
	after := m.rules.Rules("disk", "v1")
	if after == before || after.List.Admits("disk", "v1", theirs) || after.Policy.Bundle != 7 {
		t.Errorf("after the end: the same rules: %t, by %+v", after == before, after.Policy)
	}
	if m.rules.Rules("disk", "v1") != after {
		t.Error("rules are made again for each call")
	}
}

// A record never names another bundle than the one whose list and policy were asked.
func TestWhileBundlesChangeRulesAreOfOneBundle(t *testing.T) {
	m := newMachine(t)
	m.offer(1)
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				r := m.rules.Rules("disk", "v1")
				live, ok := r.List.(*nodepolicy.Live)
				if !ok || live.Revision != r.Policy.Bundle {
					t.Errorf("the list is %T, the record names %+v", r.List, r.Policy)
					return
				}
			}
		})
	}
	for revision := uint64(2); revision < 12; revision++ {
		m.offer(revision)
	}
	close(done)
	group.Wait()
	if r := m.rules.Rules("disk", "v1"); r.Policy.Bundle != 11 || r != m.rules.Rules("disk", "v1beta1") {
		t.Errorf("in the end %+v", r.Policy)
	}
	if status := m.rules.Bundle(); status.Revision != 11 || status.Invalid != "" {
		t.Errorf("status %+v", status)
	}
}
