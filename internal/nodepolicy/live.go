package nodepolicy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Options describe this node to a bundle.
type Options struct {
	// Served are the pipes that this node serves.
	Served []access.API
	// Modules are the Rego of a bundle beside what is built into the node, those of Modules if not set.
	Modules func(files map[string]string) (policy.Modules, error)
	// Policy are the options of the engine that tries and then judges: its entry point, limits and checks.
	Policy policy.Options
	// Now is the clock of the node, time.Now if not set.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Modules == nil {
		o.Modules = Modules
	}
	return o
}

// Node holds the policies in force. Its methods may be called by many at once.
type Node struct {
	o       Options
	current atomic.Pointer[Live]
}

// New returns a Node without policies.
func New(o Options) *Node { return &Node{o: o.withDefaults()} }

// Current returns the policies in force; nil before a bundle was accepted. Load it once for each call.
func (n *Node) Current() *Live { return n.current.Load() }

// Prepare compiles a bundle, runs its tests and shows it strangers. It is Options.Prepare of a bundle.Keeper.
func (n *Node) Prepare(ctx context.Context, b bundle.Bundle, _ bundle.Seal) (commit func(), err error) {
	live, err := Try(ctx, n.o, b)
	if err != nil {
		return nil, err
	}
	return func() { n.current.Store(live) }, nil
}

// Live is a compiled bundle.
type Live struct {
	// Revision and PolicyRevision are the bundle's.
	Revision       uint64
	PolicyRevision string
	// Engine judges in Rego what the access list has allowed.
	Engine *policy.Engine

	document access.Document
	served   []access.API
	now      func() time.Time
	tried    time.Time // by the wall clock alone
	began    time.Time // the same moment by the monotonic clock
	table    atomic.Pointer[access.Table]
	again    sync.Mutex // one table is made at a time
}

// Try makes a Live of a bundle. It fails if the bundle does not compile, if a test or check fails, or if it permits
// anything to a caller that no policy names.
func Try(ctx context.Context, o Options, b bundle.Bundle) (*Live, error) {
	o = o.withDefaults()
	document, err := access.ParseDocument(b.ACL)
	if err != nil {
		return nil, err
	}
	began, tried := time.Now(), o.Now().Round(0)
	live := &Live{Revision: b.Revision, PolicyRevision: b.PolicyRevision, document: document, served: o.Served, now: o.Now, tried: tried, began: began}
	live.table.Store(access.NewTable(document, o.Served, tried))
	if err := live.refusesStrangers(); err != nil {
		return nil, err
	}
	if live.Engine, err = TryModules(ctx, o, b.Modules); err != nil {
		return nil, err
	}
	return live, nil
}

// TryModules compiles the Rego of a bundle beside what is built in, runs its tests, and has an engine judge by it.
func TryModules(ctx context.Context, o Options, files map[string]string) (*policy.Engine, error) {
	o = o.withDefaults()
	engine, err := policy.New(o.Policy)
	if err != nil {
		return nil, err
	}
	modules, err := o.Modules(files)
	if err != nil {
		return nil, err
	}
	if len(modules.Files) == 0 {
		return nil, errNoRego
	}
	if _, err := engine.Activate(ctx, modules); err != nil {
		return nil, err
	}
	return engine, nil
}

var errNoRego = errors.New("there is no Rego: neither in the bundle nor built in")

// strangers are callers that no policy can name: an unknown one, a pod of an impossible namespace, and a process of the node.
var strangers = []caller.Caller{
	{},
	{Assurance: "pod", User: caller.User{SID: "S-1-5-93-2-1"}, Pod: caller.Pod{Namespace: "pipeguard-canary-", ServiceAccount: "canary"}, Container: caller.Container{Name: "canary", Image: "canary"}, Token: true},
	{Assurance: "pod", User: caller.User{SID: "S-1-5-18"}},
	{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\canary.exe`}},
}

func (l *Live) refusesStrangers() error {
	t := l.table.Load()
	for _, api := range l.served {
		for _, operation := range append([]string{"/canary.Canary/Call"}, api.Operations...) {
			for _, who := range strangers {
				d := t.Decide(access.Call{Group: api.Group, Version: api.Version, Operation: operation, Caller: who})
				if d.Effect != access.Deny {
					return fmt.Errorf("rule %s allows %s on %s-%s to a caller that no policy names", d.Rule, operation, api.Group, api.Version)
				}
			}
		}
	}
	return nil
}

// Decide answers a request by the subjects that have not ended. A denial names the policies that guard the pipe.
func (l *Live) Decide(c access.Call) access.Decision {
	t := l.fresh()
	d := t.Decide(c)
	if d.Effect == access.Deny {
		if by := t.GuardedBy(c.Group, c.Version); len(by) > 0 {
			d.Reason = fmt.Sprintf("PipePolicy %s, %s: %s", shown(by), l.revision(), d.Reason)
		} else {
			d.Reason = "no PipePolicy names this pipe, " + l.revision()
		}
	}
	return d
}

// revision names the policies as admission does in its refusals, and the bundle that they came in.
func (l *Live) revision() string {
	const most = len("sha256:") + 12
	if l.PolicyRevision == "" {
		return fmt.Sprintf("revision %d", l.Revision)
	}
	return fmt.Sprintf("policy %s, revision %d", l.PolicyRevision[:min(len(l.PolicyRevision), most)], l.Revision)
}

// shown names at most three.
func shown(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Notes say what of the policies cannot be expressed on this node, and so permits nothing here.
func (l *Live) Notes() []string { return notes(l.document, l.served) }

// List is the access list as it is now, for the other questions that it answers.
func (l *Live) List() *access.List { return l.fresh().List }

// time is the wall clock's, and never earlier than by the monotonic clock: setting the wall clock back does not extend the life
// of a subject, nor of the bundle.
func (l *Live) time() time.Time {
	steady := l.tried.Add(time.Since(l.began))
	if wall := l.now().Round(0); wall.After(steady) {
		return wall
	}
	return steady
}

// fresh returns the table, made again if a subject has ended since. A clock that is set back does not bring a subject back.
func (l *Live) fresh() *access.Table {
	t := l.table.Load()
	if t.Until.IsZero() || l.time().Before(t.Until) {
		return t
	}
	l.again.Lock()
	defer l.again.Unlock()
	now := l.time()
	if t = l.table.Load(); t.Until.IsZero() || now.Before(t.Until) {
		return t
	}
	next := access.NewTable(l.document, l.served, now)
	l.table.Store(next)
	return next
}

// Connections is how many connections to a pipe a caller may hold open; 0 sets no bound.
func (l *Live) Connections(group, version string, who caller.Caller) int {
	return l.fresh().Connections(group, version, who)
}

// Admits says whether the list could allow the caller any call on a pipe.
func (l *Live) Admits(group, version string, who caller.Caller) bool {
	return l.fresh().Admits(group, version, who)
}

// Names says whether a rule for the pipe has the method by its own name.
func (l *Live) Names(group, version, method string) bool {
	return l.fresh().Names(group, version, method)
}

// IsGuarded says whether a policy guards a pipe, whatever it permits there.
func (l *Live) IsGuarded(group, version string) bool {
	return len(l.table.Load().GuardedBy(group, version)) > 0
}
