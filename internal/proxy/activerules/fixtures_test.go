package activerules

import (
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/test/bundletest"
)

var issued = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	front          = `\\.\pipe\front` // a forwarded pipe that a policy of the cluster guards
	back           = `\\.\pipe\back`  // and one that none does
	policyRevision = "sha256:0123456789abcdef"
)

// theirs is a caller whom the cluster's policies name, ours one whom the node's own rules do.
var (
	theirs = caller.Caller{Assurance: "pod", User: caller.User{SID: "S-1-5-93-2-1"}, Pod: caller.Pod{Namespace: "storage", ServiceAccount: "csi-node"}, Container: caller.Container{Name: "driver", Image: "registry.example/driver:v1"}}
	ours   = caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\agent.exe`}}
)

// machine is a node with a clock that a test sets: its keeper, its bundle and its rules are the real ones.
type machine struct {
	t      *testing.T
	dir    string
	key    *bundle.Key
	clock  atomic.Pointer[time.Time]
	known  []access.API
	keeper *bundle.Keeper
	rules  *Set
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), key: bundletest.NewKey(t), known: []access.API{{Group: front}, {Group: back}}}
	m.set(issued.Add(time.Hour))
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, api := range apis {
		entry := access.API{Group: api.GroupVersion().Group, Version: api.GroupVersion().Version}
		for _, op := range api.Operations() {
			entry.Operations = append(entry.Operations, op.Name)
		}
		m.known = append(m.known, entry)
	}
	m.restart(m.key)
	return m
}

func (m *machine) set(now time.Time) { m.clock.Store(&now) }

// restart is what a start of the program does, with one key pinned.
func (m *machine) restart(key *bundle.Key) {
	m.t.Helper()
	keys, err := bundle.ParseKeys(key.PublicPEM())
	if err != nil {
		m.t.Fatal(err)
	}
	now := func() time.Time { return *m.clock.Load() }
	n := nodepolicy.New(nodepolicy.Options{Served: m.known, Policy: nodepolicy.EngineOptions(policy.Options{BaseTested: true, Timeout: 20 * time.Second}), Now: now})
	m.keeper, err = bundle.NewKeeper(m.t.Context(), bundle.Options{Keys: keys, Audience: "default", Dir: m.dir, Prepare: n.Prepare, Now: now})
	if err != nil {
		m.t.Fatal(err)
	}
	m.rules = New(&Bundles{Keeper: m.keeper, Node: n})
	m.rules.Use(local(m.t))
}

// local allows ours on the filesystem, and would let everybody do everything to disks and on the forwarded pipes.
func local(t *testing.T) *proxy.Rules {
	t.Helper()
	list, err := acl.New(acl.Spec{
		Modes: []acl.PipeMode{{Pipe: "disk-*", Mode: access.LogOnly}, {Pipe: front, Mode: access.LogOnly}, {Pipe: back, Mode: access.LogOnly}},
		Rules: []acl.Rule{
			{Name: "agent", Pipes: []string{"filesystem-*", "disk-*", "volume-*"}, Operations: []string{"*"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}},
			{Name: "forwarded", Pipes: []string{front, back}, Operations: []string{"*"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return proxy.Listed(list)
}

type spec = v1alpha1.PipePolicySpec

// object is a policy for disks and the forwarded pipe front.
func object(name string, change ...func(*spec)) v1alpha1.PipePolicy {
	p := v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec{
		Pipes:    []v1alpha1.PipePattern{"csi-proxy-disk-*", "front"},
		Subjects: []v1alpha1.Subject{{Name: "node", Namespace: "storage", ServiceAccounts: []string{"csi-node"}}},
	}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// archive is a bundle of a revision that lives for a day.
func (m *machine) archive(revision uint64, key *bundle.Key, objects ...v1alpha1.PipePolicy) []byte {
	m.t.Helper()
	b, err := policyset.BundleSources{PipePolicies: objects, PolicyRevision: policyRevision}.Bundle()
	if err != nil {
		m.t.Fatal(err)
	}
	b.Revision, b.Audience, b.IssuedAt, b.ExpiresAt = revision, "default", issued, issued.Add(24*time.Hour)
	raw, err := bundle.Build(b, key)
	if err != nil {
		m.t.Fatal(err)
	}
	return raw
}

// offer takes a bundle with the policy azuredisk, or others.
func (m *machine) offer(revision uint64, objects ...v1alpha1.PipePolicy) {
	m.t.Helper()
	if len(objects) == 0 {
		objects = []v1alpha1.PipePolicy{object("azuredisk")}
	}
	if _, err := m.keeper.Offer(m.t.Context(), m.archive(revision, m.key, objects...)); err != nil {
		m.t.Fatal(err)
	}
}

// ask is what the node's rules say of a call.
func (m *machine) ask(group, version, operation string, who caller.Caller) access.Decision {
	m.t.Helper()
	rules := m.rules.Rules(group, version)
	if rules == nil {
		m.t.Fatal("no rules")
	}
	return rules.List.Decide(access.Call{Group: group, Version: version, Operation: operation, Caller: who})
}
