package report

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/test/audit/hostile"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// log writes events as the log's own writer does and reads them back.
func log(t *testing.T, events ...audit.Event) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := audit.NewStream(&out)
	for _, e := range events {
		if _, err := w.Append(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	return &out
}

// pageOf is the page about a log, as a browser reads it.
func pageOf(t *testing.T, in *bytes.Buffer, v Verdict) (text string, doc *html.Node) {
	t.Helper()
	source, err := query.Open([]string{"-"}, in)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Collect(source.Records())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.Write(&out, About{Names: []string{"x"}, Made: start, Version: "v1"}, v); err != nil {
		t.Fatal(err)
	}
	if doc, err = html.Parse(bytes.NewReader(out.Bytes())); err != nil {
		t.Fatal(err)
	}
	return out.String(), doc
}

func nodes(n *html.Node, visit func(*html.Node)) {
	visit(n)
	for c := range n.ChildNodes() {
		nodes(c, visit)
	}
}

func inner(n *html.Node) string {
	var b strings.Builder
	nodes(n, func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	})
	return b.String()
}

func find(doc *html.Node, tag string) (all []*html.Node) {
	nodes(doc, func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == tag {
			all = append(all, n)
		}
	})
	return all
}

// elements and attributes are all that the page is made of. None of them runs or fetches anything.
var (
	elements = strings.Fields("html head meta title style body h1 h2 section strong p ul li code dl div dt dd span svg line rect text table thead tbody tr th td details summary pre")
	attrs    = strings.Fields("lang charset http-equiv content name class viewbox role aria-label x y x1 x2 y1 y2 width height text-anchor scope colspan")
)

func checkInert(t *testing.T, about string, text string, doc *html.Node) {
	t.Helper()
	nodes(doc, func(n *html.Node) {
		if n.Type == html.CommentNode {
			t.Errorf("%q: a comment: %q", about, n.Data)
		}
		if n.Type != html.ElementNode {
			return
		}
		if !slices.Contains(elements, n.Data) {
			t.Errorf("%q: an element %s", about, n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(attrs, strings.ToLower(a.Key)) {
				t.Errorf("%q: %s has an attribute %s", about, n.Data, a.Key)
			}
		}
	})
	for _, r := range text {
		if r != '\n' && !inert.IsInert(r) {
			t.Errorf("%q: the page holds %U", about, r)
		}
	}
	if len(find(doc, "style")) != 1 || strings.Contains(inner(find(doc, "style")[0]), "url(") || strings.Contains(inner(find(doc, "style")[0]), "@import") {
		t.Errorf("%q: the styles are others or fetch something", about)
	}
}

func TestHostileTextsAreTextOnThePage(t *testing.T) {
	for _, text := range hostile.Texts() {
		denied, refused, intent, admission := hostile.Event(text), hostile.Event(text), hostile.Event(text), hostile.Event(text)
		refused.Type, refused.Stage, refused.Outcome.Result = audit.TypeConnection, audit.StageConnectionClosed, audit.ResultRejected
		intent.ID, intent.Stage, intent.Outcome = text, audit.StageRequestReceived, nil
		admission.Type, admission.Stage = audit.TypeAdmission, audit.Stage(text)
		opened := audit.Event{Type: audit.TypeLog, Stage: audit.Stage(text), Time: start, Log: &audit.Log{PreviousSession: text, PreviousSeq: 7}}
		in := log(t, opened, denied, refused, intent, admission)
		in.WriteString(text + "\n")
		page, doc := pageOf(t, in, Verdict{Status: Tampered, Summary: text, Details: []string{text}, Limits: []string{text}})
		checkInert(t, text, page, doc)
	}
}

func TestTheVerdictStandsFirst(t *testing.T) {
	for status, want := range map[string]string{
		OK: "Verified: whole and unchanged", Incomplete: "Incomplete", Unverified: "Not verified", Tampered: "Tampered with",
	} {
		text, doc := pageOf(t, log(t, hostile.Event("x")), Verdict{Status: status, Summary: "because of it", Limits: []string{"a limit"}})
		section := find(doc, "section")[0]
		if got := inner(section); !strings.Contains(got, want) || !strings.Contains(got, "because of it") || !strings.Contains(got, "a limit") {
			t.Errorf("%s: the verdict is %q", status, got)
		}
		if strings.Index(text, "<section") > strings.Index(text, "<h2") || strings.Index(text, "<section") > strings.Index(text, "<table") {
			t.Errorf("%s: something stands before the verdict", status)
		}
	}
	in := log(t, hostile.Event("x"))
	in.WriteString("{}\n")
	_, doc := pageOf(t, in, Verdict{Status: OK})
	if got := inner(find(doc, "section")[0]); strings.Contains(got, "whole") || !strings.Contains(got, "lines that are no records") {
		t.Errorf("of a log with a line that is no record, the verdict is %q", got)
	}
}

func TestOnlyAVerificationThatSaysSoMakesALogTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		err    error
		want   string
	}{
		"it could not be verified":   {"", errors.New("no key"), Unverified},
		"it could not, and says ok":  {OK, errors.New("no key"), Unverified},
		"a status that is not known": {"fine", nil, Tampered},
		"no status":                  {"", nil, Tampered},
		"tampered":                   {Tampered, nil, Tampered},
		"incomplete":                 {Incomplete, nil, Incomplete},
		"unverified":                 {Unverified, nil, Unverified},
		"ok":                         {OK, nil, OK},
	} {
		if got := Judge(Verdict{Status: c.status}, c.err); got.Status != c.want {
			t.Errorf("%s: %q, want %q", name, got.Status, c.want)
		}
	}
	if words("fine", 0) != words(Tampered, 0) {
		t.Error("a status that is not known looks like another one than tampered")
	}
}

// call is an intent and its end.
func call(id string, intentSeq uint64, at time.Time) []audit.Event {
	e := hostile.Event("x")
	e.ID, e.Time = id, at
	e.Decision = &audit.Decision{Effect: audit.EffectAllow, Rule: "r", Mode: "Enforce", Policy: &audit.Policy{Name: "bundle", Revision: "sha", Bundle: 7}}
	end := e
	e.Stage, e.Outcome = audit.StageRequestReceived, nil
	end.IntentSeq, end.Outcome = intentSeq, &audit.Outcome{Result: audit.ResultOK, Code: "OK"}
	return []audit.Event{e, end}
}

func TestEachRowHasItsRecord(t *testing.T) {
	denied, failed, refused := hostile.Event("x"), hostile.Event("y"), hostile.Event("z")
	failed.Decision = nil
	refused.Type, refused.Stage, refused.Outcome.Result = audit.TypeConnection, audit.StageConnectionClosed, audit.ResultRejected
	events := append(call("a", 1, start), call("lost", 3, start)[0], denied, denied, failed, refused, audit.Event{Type: audit.TypeLog, Stage: audit.StageLogClose})
	_, doc := pageOf(t, log(t, events...), Verdict{})
	rows := 0
	for _, body := range find(doc, "tbody") {
		for i, tr := range find(body, "tr") {
			if i%2 == 0 { // its record stands below it
				rows++
				continue
			}
			if pre := find(tr, "pre"); len(pre) != 1 || !strings.Contains(inner(pre[0]), `"seq"`) || !strings.Contains(inner(tr), "line ") {
				t.Errorf("a row without its record: %q", inner(tr))
			}
		}
	}
	if rows != 10 { // denial, lost operation, three policies, failure, connection, two callers, closing of the log
		t.Errorf("%d rows", rows)
	}
	text := inner(doc)
	for _, want := range []string{"no record ends it", "sha, bundle 7", "2026-03-01 12:00:00Z"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestOperationsWhoseEndIsKnownAreNotLost(t *testing.T) {
	_, doc := pageOf(t, log(t, append(call("a", 1, start), call("b", 3, start)...)...), Verdict{})
	if !strings.Contains(inner(doc), "Every operation that was let through has its end.") {
		t.Error("a call with its end is among the lost")
	}
	orphaned := call("c", 1, start)
	orphaned[1].Stage = audit.StageOrphaned
	_, doc = pageOf(t, log(t, orphaned...), Verdict{})
	if !strings.Contains(inner(doc), "the next start closed it") {
		t.Error("an orphan that was closed is not shown")
	}
}

func TestTheTimelineHasBoundedColumns(t *testing.T) {
	for name, times := range map[string][]time.Time{
		"one moment":        {start},
		"a minute":          {start, start.Add(time.Minute)},
		"ten years":         {start, start.AddDate(10, 0, 0)},
		"all years":         {time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
		"backwards":         {start, start.AddDate(-1, 0, 0), start.Add(time.Second)},
		"across the origin": {time.Unix(-1, 0), time.Unix(0, 0), time.Unix(1, 0)},
		"an hour by seconds": slices.Collect(func(yield func(time.Time) bool) {
			for i := range 3600 {
				yield(start.Add(time.Duration(i) * time.Second))
			}
		}),
	} {
		var line timeline
		for _, at := range times {
			line.add(&audit.Event{Time: at})
		}
		total := 0
		for _, c := range line.columns {
			total += c.total()
		}
		c := line.chart()
		if total != len(times) || line.reach() > maxBuckets || len(c.Bars) > maxBuckets*4 {
			t.Errorf("%s: %d of %d calls in %d columns", name, total, len(times), line.reach())
		}
		for _, b := range c.Bars {
			if b.X < 0 || b.X+b.W > c.Width || b.Y < 0 || b.Y+b.H > c.Height || b.W < 1 || b.H < 1 {
				t.Errorf("%s: a bar stands outside: %+v", name, b)
			}
		}
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	s, err := Collect(func(yield func(query.Record, error) bool) {
		for i := range 3 * maxOpen {
			e := hostile.Event(fmt.Sprint(i))
			e.V, e.Seq, e.Session, e.ID, e.Time = audit.Version, uint64(i+1), "s", fmt.Sprint(i), start
			if i%2 == 0 {
				e.Stage = audit.StageRequestReceived
			}
			line, err := audit.Encode(nil, e)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(query.Record{Event: e, Raw: bytes.TrimSuffix(line, []byte("\n"))}, nil) {
				return
			}
			if !yield(query.Record{}, &query.BadLine{File: "x"}) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.open) > maxOpen || len(s.denials.rows) > maxGroups || len(s.callers.rows) > maxGroups || len(s.bad) > maxNamed || len(s.policies.rows) > maxRows || len(s.deciding) > maxDeciding {
		t.Error("more is kept than the bounds allow")
	}
	if orphans := s.orphans(); len(orphans.rows) != maxRows || orphans.rest != 3*maxOpen/2-maxRows {
		t.Errorf("%d orphans shown, %d counted", len(orphans.rows), orphans.rest)
	}
}

func TestAFaultOfTheDiskIsNoPage(t *testing.T) {
	_, err := Collect(func(yield func(query.Record, error) bool) { yield(query.Record{}, errors.New("disk on fire")) })
	if err == nil {
		t.Error("no error")
	}
}

// Nobody takes the last moment of a summary for the moment of all that it counts.
func TestThePageSaysWhichTimeASummaryCovers(t *testing.T) {
	begin := start.Add(-9 * time.Minute)
	e := audit.Event{
		V: 1, Seq: 1, Type: audit.TypeRequest, Stage: audit.StageSummary, Time: start, Session: "s", ID: "i",
		Decision: &audit.Decision{Effect: audit.EffectDeny, Reason: "no"}, Outcome: &audit.Outcome{Result: audit.ResultDenied, Count: 655, First: begin},
	}
	single := e
	single.Stage, single.Outcome, single.Time = audit.StageResponseComplete, &audit.Outcome{Result: audit.ResultDenied}, start.Add(-time.Minute)
	s, err := Collect(func(yield func(query.Record, error) bool) {
		_ = yield(query.Record{Event: single, Raw: []byte("{}")}, nil) && yield(query.Record{Event: e, Raw: []byte("{}")}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := s.Write(&page, About{}, Verdict{Status: OK}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"records from " + stamp(begin) + " to " + stamp(start), "up to 655 of them, counted in summaries, in the time since " + stamp(begin),
		`class="denied summed"`, "A paler bar", "<td>" + stamp(begin) + "</td>", `class="denied"`, `x="0" y="270">` + stamp(begin)[:16],
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	var line timeline
	for i := range 500 {
		e.Time, e.Outcome.First = start.Add(time.Duration(i)*time.Hour), start.AddDate(0, -i%17, 0)
		line.add(&e)
	}
	total := 0
	for _, c := range line.columns {
		total += c.total()
	}
	if total != 500*655 || line.reach() > maxBuckets {
		t.Errorf("%d calls in %d columns", total, line.reach())
	}
}
