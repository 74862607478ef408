package nodes

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/controller/publish"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	newest  = int64(1767323045)
	decides = "sha256:1"
)

var form = []string{"bundle/v2", "rules/v2"}

// node is one that decides by the newest bundle, and has just said so.
func node(name string, changes ...func(*v1alpha1.GuardedNode)) v1alpha1.GuardedNode {
	n := v1alpha1.GuardedNode{ObjectMeta: metav1.ObjectMeta{Name: name}, NodeReport: v1alpha1.NodeReport{
		ReportedAt: metav1.NewTime(noon.Add(-time.Minute)), State: v1alpha1.NodeGuarding, Schemas: form,
		Bundle: &v1alpha1.NodeBundle{Pool: "default", Revision: newest, PolicyRevision: decides},
	}}
	n.UID = "1"
	for _, change := range changes {
		change(&n)
	}
	return n
}

func snapshotOf(nodes ...v1alpha1.GuardedNode) *snapshot {
	return &snapshot{
		nodes: nodes, heard: func(n *v1alpha1.GuardedNode) time.Time { return n.ReportedAt.Time }, publishes: true, now: noon,
		published: map[string]publish.Result{"default": {Pool: "default", Revision: uint64(newest), Schemas: form}, "failing": {Pool: "failing", Err: errors.New("x")}},
	}
}

func refuses(n *v1alpha1.GuardedNode) { n.Bundle.Refused = "signature" }
func denies(n *v1alpha1.GuardedNode) {
	n.State, n.Bundle.Invalid = v1alpha1.NodeDenying, "expired"
}
func isDated(n *v1alpha1.GuardedNode) { n.Schemas = []string{"bundle/v2", "rules/v1"} }
func isOlder(n *v1alpha1.GuardedNode) { n.Bundle.Revision-- }
func isQuiet(n *v1alpha1.GuardedNode) {
	n.ReportedAt = metav1.NewTime(noon.Add(-v1alpha1.NodeSilentAfter))
}
func isLocal(n *v1alpha1.GuardedNode) { n.State, n.Bundle = v1alpha1.NodeLocal, nil }
func isDown(n *v1alpha1.GuardedNode)  { n.State, n.Bundle = v1alpha1.NodeUnreachable, nil }

func TestStandingOfANode(t *testing.T) {
	all := target{decides, true}
	for name, c := range map[string]struct {
		change func(*v1alpha1.GuardedNode)
		want   target
		is     string
	}{
		"the newest bundle":                         {func(*v1alpha1.GuardedNode) {}, all, standingCurrent},
		"a newer one than is known of":              {func(n *v1alpha1.GuardedNode) { n.Bundle.Revision++ }, all, standingCurrent},
		"one of a pool that nobody here serves":     {func(n *v1alpha1.GuardedNode) { n.Bundle.Pool, n.Bundle.Revision = "own", 7 }, all, standingCurrent},
		"the newest, and something else refused":    {refuses, all, standingCurrent},
		"an older one":                              {isOlder, all, standingBehind},
		"an older one, and the newest refused":      {func(n *v1alpha1.GuardedNode) { isOlder(n); refuses(n) }, all, standingRefusing},
		"other policies":                            {func(n *v1alpha1.GuardedNode) { n.Bundle.PolicyRevision = "sha256:2" }, all, standingBehind},
		"policies without a name":                   {func(n *v1alpha1.GuardedNode) { n.Bundle.PolicyRevision = "" }, target{"", true}, standingBehind},
		"a pool whose bundle cannot be made":        {func(n *v1alpha1.GuardedNode) { n.Bundle.Pool = "failing" }, all, standingBehind},
		"a policy that is in no bundle yet":         {func(*v1alpha1.GuardedNode) {}, target{decides, false}, standingBehind},
		"a bundle that has ended":                   {denies, all, standingDenying},
		"a bundle that has ended, by a wrong state": {func(n *v1alpha1.GuardedNode) { n.Bundle.Invalid = "expired" }, all, standingBehind},
		"none, because it was refused":              {func(n *v1alpha1.GuardedNode) { denies(n); refuses(n) }, all, standingRefusing},
		"no bundle in the report":                   {func(n *v1alpha1.GuardedNode) { n.Bundle = nil }, all, standingBehind},
		"denying, and no bundle in the report":      {func(n *v1alpha1.GuardedNode) { n.State, n.Bundle = v1alpha1.NodeDenying, nil }, all, standingDenying},
		"a revision that cannot be":                 {func(n *v1alpha1.GuardedNode) { n.Bundle.Revision = -1 }, all, standingBehind},
		"a state of a later version":                {func(n *v1alpha1.GuardedNode) { n.State = "Dreaming" }, all, standingBehind},
		"an older one, and reads no other":          {func(n *v1alpha1.GuardedNode) { isOlder(n); isDated(n) }, all, standingUnreadable},
		"an older one, and says not what it reads":  {func(n *v1alpha1.GuardedNode) { isOlder(n); n.Schemas = nil }, all, standingUnreadable},
		"refused, as it cannot be read":             {func(n *v1alpha1.GuardedNode) { isOlder(n); refuses(n); isDated(n) }, all, standingUnreadable},
		"ended, and the newest cannot be read":      {func(n *v1alpha1.GuardedNode) { denies(n); isDated(n) }, all, standingUnreadable},
		"one more form than there is":               {func(n *v1alpha1.GuardedNode) { n.Schemas = append([]string{"rules/v3"}, form...); isOlder(n) }, all, standingBehind},
		"the newest, of a form it does not list":    {isDated, all, standingCurrent},
		"the same, in no policy's words":            {isDated, target{decides, false}, standingBehind},
		"nothing published that it could read":      {func(n *v1alpha1.GuardedNode) { n.Bundle.Pool = "failing"; isDated(n) }, all, standingBehind},
		"reads nothing, of a pool of others":        {func(n *v1alpha1.GuardedNode) { n.Bundle.Pool, n.Schemas = "own", nil; refuses(n); denies(n) }, all, standingRefusing},
		"its own rules, and reads none":             {func(n *v1alpha1.GuardedNode) { isLocal(n); n.Schemas = nil }, all, standingLocal},
		"silence of one that reads none":            {func(n *v1alpha1.GuardedNode) { isOlder(n); isDated(n); isQuiet(n) }, all, standingSilent},
		"its own rules":                             {isLocal, all, standingLocal},
		"its own rules, with a bundle aside":        {func(n *v1alpha1.GuardedNode) { n.State = v1alpha1.NodeLocal }, all, standingLocal},
		"no answer":                                 {isDown, all, standingUnreachable},
		"no answer, with a bundle aside":            {func(n *v1alpha1.GuardedNode) { n.State = v1alpha1.NodeUnreachable }, all, standingUnreachable},
		"silence":                                   {isQuiet, all, standingSilent},
		"silence after a refusal":                   {func(n *v1alpha1.GuardedNode) { isOlder(n); refuses(n); isQuiet(n) }, all, standingSilent},
		"almost silence": {func(n *v1alpha1.GuardedNode) {
			n.ReportedAt = metav1.NewTime(noon.Add(-v1alpha1.NodeSilentAfter + time.Second))
		}, all, standingCurrent},
	} {
		n := node("win-1", c.change)
		if got := snapshotOf(n).standing(&n, c.want); got != c.is {
			t.Errorf("%s: %s, want %s", name, got, c.is)
		}
	}
}

func TestCountsNameThoseThatAreNotCurrent(t *testing.T) {
	c := snapshotOf(
		node("win-1"), node("win-2"), node("behind", isOlder), node("quiet", isQuiet), node("down", isDown), node("local", isLocal),
		node("refuses", isOlder, refuses), node("denies", denies), node("also-denies", denies), node("dated", isOlder, isDated))
	want := &v1alpha1.NodeCounts{
		Total: 10, Current: 2, Behind: 6, Refusing: 1, Silent: 1, Summary: "2/10",
		Others: []v1alpha1.OtherNode{
			{Name: "also-denies", Standing: "Denying", Revision: newest}, {Name: "denies", Standing: "Denying", Revision: newest},
			{Name: "refuses", Standing: "Refusing", Revision: newest - 1}, {Name: "dated", Standing: "Unreadable", Revision: newest - 1}, {Name: "down", Standing: "Unreachable"},
			{Name: "quiet", Standing: "Silent", Revision: newest}, {Name: "local", Standing: "Local"}, {Name: "behind", Standing: "Behind", Revision: newest - 1},
		},
	}
	if diff := cmp.Diff(want, c.counts(target{decides, true})); diff != "" {
		t.Error(diff)
	}
	if got := c.counts(target{"sha256:2", true}); got.Summary != "0/10" || got.Total != got.Current+got.Behind+got.Refusing+got.Silent {
		t.Errorf("another revision: %+v", got)
	}
}

func TestNoMoreThanTenAreNamed(t *testing.T) {
	var nodes []v1alpha1.GuardedNode
	for i := range 500 {
		nodes = append(nodes, node(fmt.Sprintf("win-%03d", i), isOlder))
	}
	got := snapshotOf(append(nodes, node("x-denies", denies))...).counts(target{decides, true})
	if len(got.Others) != maxOthers || got.Others[0].Name != "x-denies" || got.Others[1].Name != "win-000" || got.Behind != 501 {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsCountedWhereNodesGetNoBundles(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot *snapshot
		want     bool
	}{
		"no nodes":                      {snapshotOf(), false},
		"nodes without bundles":         {snapshotOf(node("a", isLocal), node("b", isDown)), true},
		"nodes, and nobody makes any":   {&snapshot{nodes: []v1alpha1.GuardedNode{node("a", isLocal), node("b", isDown)}, heard: snapshotOf().heard, now: noon}, false},
		"one that has one from outside": {&snapshot{nodes: []v1alpha1.GuardedNode{node("a", isLocal), node("b")}, heard: snapshotOf().heard, now: noon}, true},
	} {
		if got := c.snapshot.counts(target{decides, true}); (got != nil) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAPolicyIsWantedOnceItIsInTheBundles(t *testing.T) {
	set := func(p *v1alpha1.PipePolicy, kind string, status metav1.ConditionStatus, generation int64) {
		for i := range p.Status.Conditions {
			if c := &p.Status.Conditions[i]; c.Type == kind {
				c.Status, c.ObservedGeneration = status, generation
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.PipePolicy)
		isOut  bool
	}{
		"it decides and is published":      {func(*v1alpha1.PipePolicy) {}, true},
		"one pool has none":                {func(p *v1alpha1.PipePolicy) { set(p, v1alpha1.ConditionBundlesPublished, metav1.ConditionFalse, 2) }, true},
		"nobody makes bundles":             {func(p *v1alpha1.PipePolicy) { p.Status.Conditions = p.Status.Conditions[:2] }, true},
		"it has changed":                   {func(p *v1alpha1.PipePolicy) { p.Generation++ }, false},
		"the generation before was":        {func(p *v1alpha1.PipePolicy) { set(p, v1alpha1.ConditionBundlesPublished, metav1.ConditionTrue, 1) }, false},
		"bundles are being made":           {func(p *v1alpha1.PipePolicy) { set(p, v1alpha1.ConditionBundlesPublished, metav1.ConditionUnknown, 2) }, false},
		"it does not compile":              {func(p *v1alpha1.PipePolicy) { set(p, v1alpha1.ConditionCompiled, metav1.ConditionFalse, 2) }, false},
		"its tests fail":                   {func(p *v1alpha1.PipePolicy) { set(p, v1alpha1.ConditionTestsPassed, metav1.ConditionFalse, 2) }, false},
		"nothing was said of it yet":       {func(p *v1alpha1.PipePolicy) { p.Status = v1alpha1.PipePolicyStatus{} }, false},
		"nothing but the generation is so": {func(p *v1alpha1.PipePolicy) { p.Status.Conditions = nil }, false},
	} {
		p := policy("a", decides)
		c.change(p)
		if got := want(p); got.isOut != c.isOut {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhoIsHeardIsNotSilentWhateverItsClockSays(t *testing.T) {
	now := noon
	e := newHeartbeats(func() time.Time { return now })
	at := func(version string, reported time.Duration) *v1alpha1.GuardedNode {
		n := node("win-1")
		n.ResourceVersion, n.ReportedAt = version, metav1.NewTime(noon.Add(reported))
		return &n
	}
	ago := func(n *v1alpha1.GuardedNode) time.Duration { return now.Sub(e.last(n)) }

	if got := ago(at("1", -time.Hour)); got != time.Hour {
		t.Errorf("nobody has listened: %v", got)
	}
	e.hear(at("1", -time.Hour))
	if got := ago(at("1", -time.Hour)); got != time.Hour {
		t.Errorf("it was there before us: %v", got)
	}
	e.hear(at("2", -55*time.Minute)) // a clock that is an hour late
	if got := ago(at("2", -55*time.Minute)); got != 0 {
		t.Errorf("it has just reported: %v", got)
	}
	now = now.Add(20 * time.Minute)
	e.hear(at("2", -55*time.Minute)) // a list that tells nothing new
	if got := ago(at("2", -55*time.Minute)); got != 20*time.Minute {
		t.Errorf("it fell silent: %v", got)
	}
	e.forget("win-1")
	e.hear(at("3", 10*time.Hour)) // a clock that is ahead
	now = now.Add(20 * time.Minute)
	if got := ago(at("3", 10*time.Hour)); got != 20*time.Minute {
		t.Errorf("a clock that is ahead hides silence: %v", got)
	}
}
