package query

import (
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestATallyCountsWhatASummaryStandsFor(t *testing.T) {
	tally, err := NewTally([]string{"method"})
	if err != nil {
		t.Fatal(err)
	}
	deny := &audit.Decision{Effect: audit.EffectDeny, Mode: "Enforce"}
	what := &audit.What{Method: "Rmdir"}
	tally.Add(&audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: time.Unix(1, 0), What: what, Decision: deny, Outcome: &audit.Outcome{Result: audit.ResultDenied}})
	tally.Add(&audit.Event{Type: audit.TypeRequest, Stage: audit.StageSummary, Time: time.Unix(9, 0), What: what, Decision: deny, Outcome: &audit.Outcome{Result: audit.ResultDenied, Count: 41}})
	groups := tally.Groups()
	if len(groups) != 1 || groups[0].Records != 42 || groups[0].Denied != 42 {
		t.Errorf("%+v", groups[0])
	}
	var match Filter
	if err := match.Parse("stage=summary", time.Unix(9, 0)); err != nil {
		t.Fatal(err)
	}
	if !match.Match(&audit.Event{Stage: audit.StageSummary}) || match.Match(&audit.Event{Stage: audit.StageResponseComplete}) {
		t.Error("a summary is not found by its short name")
	}
}

// A summary covers the time from its first refusal to its last one.
func TestASummaryLiesInAllOfItsTime(t *testing.T) {
	begin, end := noon.Add(-9*time.Minute), noon
	e := &audit.Event{Type: audit.TypeRequest, Stage: audit.StageSummary, Time: end, Outcome: &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Count: 655, First: begin}}
	at := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }
	for name, c := range map[string]struct {
		terms   string
		isFound bool
		doubt   uint64
	}{
		"before it":          {"until=" + at(-9*time.Minute), false, 0},
		"behind it":          {"since=" + at(time.Second), false, 0},
		"its beginning":      {"until=" + at(-8*time.Minute), true, 655},
		"its end":            {"since=" + at(-time.Minute), true, 655},
		"its middle":         {"since=" + at(-5*time.Minute) + " until=" + at(-4*time.Minute), true, 655},
		"all of it":          {"since=" + at(-9*time.Minute) + " until=" + at(time.Second), true, 0},
		"all but its last":   {"until=" + at(0), true, 655},
		"it, but of another": {"until=" + at(-time.Minute) + " code=NotFound", false, 0},
	} {
		var f Filter
		if err := f.Parse(c.terms, noon); err != nil {
			t.Fatal(err)
		}
		var doubt uint64
		isFound := f.Match(e)
		for _, d := range f.Doubts() {
			doubt += d.Count
		}
		if isFound != c.isFound || doubt != c.doubt || len(f.Doubts()) > 0 && f.Doubts()[0].Key != "time" {
			t.Errorf("%s: found %t, in doubt %d", name, isFound, doubt)
		}
		for _, name := range f.Unseen() {
			if c.isFound {
				t.Errorf("%s: %s counts as unseen", c.terms, name)
			}
		}
	}
	back := *e
	back.Time, back.Outcome = begin, &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Count: 655, First: end} // the clock was set back
	for terms, doubt := range map[string]int{"": 0, "since=" + at(-time.Minute): 1, "until=" + at(-8*time.Minute): 1, "since=" + at(-5*time.Minute) + " until=" + at(-4*time.Minute): 1} {
		var f Filter
		if err := f.Parse(terms, noon); err != nil {
			t.Fatal(err)
		}
		if !f.Match(&back) || len(f.Doubts()) != doubt {
			t.Errorf("%q, with the clock set back: not found, or in doubt %v", terms, f.Doubts())
		}
	}
	for key, want := range map[string]string{"minute": "2026-03-01T11:21Z/2026-03-01T11:30Z", "hour": "2026-03-01T11Z", "day": "2026-03-01"} {
		tally, err := NewTally([]string{key})
		if err != nil {
			t.Fatal(err)
		}
		tally.Add(e)
		if g := tally.Groups()[0]; g.Values[0] != want || !g.First.Equal(begin) || !g.Last.Equal(end) {
			t.Errorf("by %s: %+v", key, g)
		}
	}
}

// What refusals do not share is missing in their summary, so it may be anything, also for those who exclude it.
func TestWhatASummaryDoesNotSayMayBeAnything(t *testing.T) {
	whole := func() *audit.Event {
		return &audit.Event{
			Type: audit.TypeRequest, Stage: audit.StageSummary, Time: noon,
			Who:      &audit.Who{Assurance: "process", User: &audit.WhoUser{SID: "uid:7"}, Process: &audit.WhoProcess{PID: 9, Exe: "/bin/drv"}},
			What:     &audit.What{Pipe: "csi-proxy-disk-v1", Method: "Rmdir", FullMethod: "/v1.Filesystem/Rmdir", Verb: "delete", Targets: []audit.Target{{Kind: "path", Value: `C:\a`}}},
			Decision: &audit.Decision{Effect: audit.EffectDeny, Mode: "Enforce", Reason: "no rule names the caller"},
			Outcome:  &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Error: "no rule", Count: 5, First: noon},
		}
	}
	for name, c := range map[string]struct {
		less   func(*audit.Event)
		has    string // of the whole one
		hasNot string
	}{
		"processes": {func(e *audit.Event) { e.Who.Process = nil }, "program=drv", "pid=10"},
		"callers":   {func(e *audit.Event) { e.Who = &audit.Who{Assurance: "none", Doubt: audit.DoubtSeveral} }, "user=uid:7", "user=uid:8"},
		"versions":  {func(e *audit.Event) { e.What.FullMethod = "" }, "method=/v1.Filesystem/Rmdir", "method=/v2.Filesystem/Rmdir"},
		"methods":   {func(e *audit.Event) { e.What.Method, e.What.FullMethod, e.What.Verb = "", "", "" }, "method=Rmdir", "verb=create"},
		"reasons":   {func(e *audit.Event) { e.Decision.Reason = "" }, "reason=*names*", "rule=x"},
		"errors":    {func(e *audit.Event) { e.Outcome.Error = "" }, "error=*rule", "error=other"},
		"codes":     {func(e *audit.Event) { e.Outcome.Code = "" }, "code=PermissionDenied", "code=NotFound"},
		"targets":   {func(e *audit.Event) { e.What.MoreTargets = 3 }, `path=C:\a`, `path=C:\b`},
	} {
		less := whole()
		c.less(less)
		for _, term := range []string{c.has, c.hasNot} {
			for _, not := range []string{"", "!"} {
				found := func(e *audit.Event) (bool, uint64) {
					f := Filter{}
					key, value, _ := strings.Cut(term, "=")
					add := func() error { return f.Want(key, value, noon) }
					if not != "" {
						add = func() error { return f.Exclude(key, value) }
					}
					if err := add(); err != nil {
						t.Fatal(err)
					}
					isFound, doubt := f.Match(e), uint64(0)
					for _, d := range f.Doubts() {
						doubt += d.Count
					}
					return isFound, doubt
				}
				if isFound, doubt := found(whole()); isFound != ((term == c.has) == (not == "")) || doubt != 0 {
					t.Errorf("%s: %s%s of all: found %t, in doubt %d", name, not, term, isFound, doubt)
				}
				if isFound, doubt := found(less); !isFound || doubt != 5 {
					t.Errorf("%s: %s%s of what they share: found %t, in doubt %d", name, not, term, isFound, doubt)
				}
			}
		}
	}
	tally, err := NewTally([]string{"program"})
	if err != nil {
		t.Fatal(err)
	}
	less := whole()
	less.Who.Process = nil
	tally.Add(less)
	if got := tally.Groups()[0].Values[0]; got != several {
		t.Errorf("counted as %q", got)
	}
}

// A summary has the time of its last refusal alone, and a connection's time is how long it was open.
func TestMeanTimesAreOfRequestsWithARecordOfTheirOwn(t *testing.T) {
	tally, err := NewTally([]string{"method"})
	if err != nil {
		t.Fatal(err)
	}
	what := &audit.What{Method: "Mkdir", FullMethod: "/v1.Filesystem/Mkdir"}
	one := audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, What: what, Outcome: &audit.Outcome{Result: audit.ResultDenied, LatencyUS: 100}}
	many := audit.Event{Type: audit.TypeRequest, Stage: audit.StageSummary, What: what, Outcome: &audit.Outcome{Result: audit.ResultDenied, Count: 40, LatencyUS: 9000}}
	tally.Add(&many)
	if g := tally.Groups()[0]; g.Timed != 0 || g.Mean() != 0 || g.Longest != 0 {
		t.Errorf("of a summary alone: %+v", g)
	}
	tally.Add(&one)
	if g := tally.Groups()[0]; g.Timed != 1 || g.Mean() != 100*time.Microsecond || g.Longest != 100*time.Microsecond || g.Records != 41 {
		t.Errorf("of both: %+v", g)
	}
	tally.Add(&audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, What: what, Outcome: &audit.Outcome{Result: audit.ResultOK, LatencyUS: 9081563}})
	if g := tally.Groups()[0]; g.Timed != 1 || g.Longest != 100*time.Microsecond || g.Records != 42 {
		t.Errorf("with a connection: %+v", g)
	}
}
