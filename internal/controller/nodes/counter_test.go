package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/controller/publish"
)

func newCounter(s *server, now func() time.Time) *counter {
	o := Options{Now: now, Published: func() []publish.Result { return []publish.Result{{Pool: "default", Revision: uint64(newest)}} }}.withDefaults()
	m, _ := newMetrics(nil) // which fails only where it is registered
	return &counter{
		metrics: m, Options: o, cached: s, status: statuses{server: s}, heartbeats: newHeartbeats(o.Now), changed: make(chan struct{}, 1),
		cleaner: cleaner{live: s, writer: s, log: zap.NewNop()}, watch: func(context.Context, *counter) error { return nil },
	}
}

func atNoon() time.Time { return noon }

func TestAStatusIsWrittenWhenTheCountsChangeAndOnlyThen(t *testing.T) {
	s := newServer()
	s.policies["a"], s.policies["b"] = policy("a", decides), policy("b", decides)
	s.policies["leaving"] = policy("leaving", decides)
	s.policies["leaving"].DeletionTimestamp = new(metav1.NewTime(noon))
	s.put(node("win-1"))
	c := newCounter(s, atNoon)
	for _, step := range []struct {
		what    string
		do      func()
		written int
		summary string
	}{
		{"the first", func() {}, 2, "1/1"},
		{"nothing new", func() {}, 0, "1/1"},
		{"a heartbeat", func() { s.put(node("win-1", func(n *v1alpha1.GuardedNode) { n.ReportedAt = metav1.NewTime(noon) })) }, 0, "1/1"},
		{"another node", func() { s.put(node("win-2", isOlder)) }, 2, "1/2"},
		{"it follows", func() { s.put(node("win-2")) }, 2, "2/2"},
		{"one policy changes", func() { s.policies["a"].Generation++ }, 1, "0/2"},
		{"somebody edits a status", func() { s.policies["b"].Status.Nodes = nil }, 1, "0/2"},
	} {
		step.do()
		written, err := c.count(t.Context())
		n := s.policies["a"].Status.Nodes
		if err != nil || written != step.written || n.Summary != step.summary || len(n.Others) != int(n.Total-n.Current) {
			t.Errorf("%s: %d written, %v, %+v", step.what, written, err, s.policies["a"].Status.Nodes)
		}
	}
	delete(s.nodes, "win-1")
	delete(s.nodes, "win-2")
	if written, err := c.count(t.Context()); err != nil || written != 2 || s.policies["a"].Status.Nodes != nil {
		t.Errorf("no nodes: %d written, %v, %+v", written, err, s.policies["a"].Status.Nodes)
	}
	s.fail = errors.New("away")
	s.put(node("win-1"))
	if _, err := c.count(t.Context()); !errors.Is(err, s.fail) {
		t.Errorf("got %v", err)
	}
}

func TestNodesFallSilentWithoutAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.policies["a"] = policy("a", decides)
		s.exist["win-1"] = true
		c := newCounter(s, time.Now)
		came := func(n v1alpha1.GuardedNode) { // at our time, whatever the node's
			before := s.nodes[n.Name]
			o := s.put(n)
			if before == nil {
				c.came(nil, o)
			} else {
				c.came(before, o)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		is := func(summary string, silent int32, patches int) {
			t.Helper()
			synctest.Wait()
			if written, n := s.has("a"); n == nil || n.Summary != summary || n.Silent != silent || written != patches {
				t.Errorf("%+v, %d patches, want %s, %d silent, %d patches", n, written, summary, silent, patches)
			}
		}
		came(node("win-1", func(n *v1alpha1.GuardedNode) { n.ReportedAt = metav1.Now() }))
		time.Sleep(gather + time.Second)
		is("1/1", 0, 1)
		for range 10 { // heartbeats with a clock that stands still
			time.Sleep(5 * time.Minute)
			came(node("win-1"))
		}
		time.Sleep(every)
		is("1/1", 0, 1)
		time.Sleep(v1alpha1.NodeSilentAfter + every)
		is("0/1", 1, 2)
		came(node("win-1"))
		time.Sleep(every + time.Second)
		is("1/1", 0, 3)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAClusterWithoutTheDefinitionIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.policies["a"] = policy("a", decides)
		s.put(node("win-1"))
		c := newCounter(s, atNoon)
		attempts := 0
		c.watch = func(context.Context, *counter) error {
			if attempts++; attempts < 3 {
				return errors.New("no matches for kind GuardedNode")
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		time.Sleep(every + time.Second)
		synctest.Wait()
		if n, _ := s.has("a"); n > 0 {
			t.Error("it counts what it cannot see")
		}
		time.Sleep(every)
		synctest.Wait()
		if _, nodes := s.has("a"); nodes == nil {
			t.Error("it does not count")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A bundle arrives on a thousand nodes over a minute and a half.
func TestARolloutWritesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.policies["a"] = policy("a", decides)
		c := newCounter(s, time.Now)
		for i := range 1000 {
			n := node(fmt.Sprintf("win-%d", i), isOlder)
			n.ReportedAt = metav1.Now()
			c.came(nil, s.put(n))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		for i := range 1000 {
			time.Sleep(90 * time.Millisecond)
			n := node(fmt.Sprintf("win-%d", i))
			n.ReportedAt = metav1.Now()
			before := s.nodes[n.Name]
			c.came(before, s.put(n))
		}
		time.Sleep(2 * gather)
		synctest.Wait()
		if written, n := s.has("a"); written > 25 || n.Summary != "1000/1000" {
			t.Errorf("%d patches, %+v", written, n)
		}
		cancel()
		<-done
	})
}

func TestOnlyNewsHasACountMade(t *testing.T) {
	c := newCounter(newServer(), atNoon)
	asked := func() bool {
		select {
		case <-c.changed:
			return true
		default:
			return false
		}
	}
	n, p := node("win-1"), policy("a", decides)
	with := func(change func(*v1alpha1.GuardedNode)) *v1alpha1.GuardedNode { return new(node("win-1", change)) }
	for name, step := range map[string]struct {
		before, after any
		want          bool
	}{
		"a new node":        {nil, &n, true},
		"a heartbeat":       {&n, with(func(n *v1alpha1.GuardedNode) { n.ReportedAt = metav1.NewTime(noon); n.ResourceVersion = "9" }), false},
		"other words":       {&n, with(func(n *v1alpha1.GuardedNode) { n.Message = "x" }), false},
		"another bundle":    {&n, with(isOlder), true},
		"other schemas":     {&n, with(isDated), true},
		"a refusal":         {&n, with(refuses), true},
		"its end":           {&n, with(denies), true},
		"no bundle":         {&n, with(func(n *v1alpha1.GuardedNode) { n.Bundle = nil }), true},
		"another state":     {&n, with(isDown), true},
		"a new policy":      {nil, p, true},
		"nothing of it":     {p, p.DeepCopy(), false},
		"another revision":  {p, policy("a", "sha256:2"), true},
		"an edited status":  {p, func() any { o := p.DeepCopy(); o.Status.Nodes = &v1alpha1.NodeCounts{}; return o }(), true},
		"a violation of it": {p, func() any { o := p.DeepCopy(); o.Status.Violations = new(int32(3)); return o }(), false},
	} {
		c.came(step.before, step.after)
		if got := asked(); got != step.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	c.went(toolscache.DeletedFinalStateUnknown{Obj: &n})
	if len(c.heartbeats.seen) != 0 || !asked() {
		t.Error("a node that is gone is remembered")
	}
}

func TestAPublisherIsToldWhoCannotReadABundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newCounter(s, atNoon)
		r := publish.Result{Pool: "default", Revision: uint64(newest) + 1, Schemas: form}
		for name, changes := range map[string][]func(*v1alpha1.GuardedNode){
			"reads": nil, "dated": {isDated}, "silent": {isDated, isQuiet}, "local": {isLocal, isDated}, "an-older": {func(n *v1alpha1.GuardedNode) { n.Schemas = nil }},
			"another-pool": {isDated, func(n *v1alpha1.GuardedNode) { n.Bundle.Pool = "gpu" }},
			"has-it":       {isDated, func(n *v1alpha1.GuardedNode) { n.Bundle.Revision++ }},
			"has-it-ended": {isDated, denies, func(n *v1alpha1.GuardedNode) { n.Bundle.Revision++ }},
			"leaves":       {isDated, func(n *v1alpha1.GuardedNode) { n.DeletionTimestamp = new(metav1.NewTime(noon)) }},
		} {
			s.put(node(name, changes...))
		}
		got, err := c.unread(t.Context(), r)
		if diff := cmp.Diff([]string{"an-older", "dated", "has-it-ended"}, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		s.list = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() } // a cache that is never filled
		if got, err := c.unread(t.Context(), r); !errors.Is(err, context.DeadlineExceeded) || got != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestReportsOfNodesThatAreGoneAreRemoved(t *testing.T) {
	s := newServer()
	s.put(node("alive"))
	s.put(node("quiet", isQuiet))
	s.put(node("gone", isQuiet))
	s.put(node("reporting"))
	s.exist["alive"], s.exist["quiet"] = true, true
	now := noon
	c := newCounter(s, func() time.Time { return now })
	left := func() (names []string) {
		for name := range s.nodes {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	s.fail = errors.New("away")
	if _, err := c.count(t.Context()); err != nil || len(s.nodes) != 4 {
		t.Errorf("unknown is no reason: %v, %q", err, left())
	}
	s.fail = nil
	now = now.Add(cleanEvery)
	for n := range s.nodes { // who reports is not asked for, whether or not there is a Node
		if n == "alive" || n == "reporting" {
			s.put(node(n, func(n *v1alpha1.GuardedNode) { n.ReportedAt = metav1.NewTime(now) }))
		}
	}
	s.looked = 0
	for range 3 { // once
		if _, err := c.count(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"alive", "quiet", "reporting"}, left()); diff != "" || s.looked != 2 {
		t.Errorf("%d looks\n%s", s.looked, diff)
	}
}

func TestAReportThatCameMeanwhileStays(t *testing.T) {
	s := newServer()
	old := s.put(node("gone", isQuiet))
	s.put(node("gone"))
	c := cleaner{live: s, writer: s, log: zap.NewNop()}
	if err := c.remove(t.Context(), old); err != nil || len(s.nodes) != 1 {
		t.Errorf("%v, %d left", err, len(s.nodes))
	}
}

func TestSilentNodesAreLookedForInTurns(t *testing.T) {
	var all []*v1alpha1.GuardedNode
	for i := range 120 {
		all = append(all, new(node(fmt.Sprintf("win-%03d", i))))
	}
	next, seen := "", map[string]int{}
	for range 12 {
		for _, n := range turn(all, &next) {
			seen[n.Name]++
		}
	}
	for _, n := range all {
		if seen[n.Name] != 5 {
			t.Errorf("%s was looked for %d times", n.Name, seen[n.Name])
		}
	}
	if got := turn(all[:maxLooks], &next); len(got) != maxLooks {
		t.Errorf("%d of %d", len(got), maxLooks)
	}
}
