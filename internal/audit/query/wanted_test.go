package query_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/test/audit/hostile"
)

// ways are how a reader can be told of the records that fit: all records, those that are wanted, and these without what nobody looks at.
var ways = []string{"all", "wanted", "lent"}

// found is what a reader learns who looks for records in one way, and counts those that are no intents.
func found(t testing.TB, way string, s *query.Source, filter, by string) string {
	t.Helper()
	var f query.Filter
	if err := f.Parse(filter, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	tally, err := query.NewTally(strings.Split(by, ","))
	if err != nil {
		t.Fatal(err)
	}
	counts := func(e *audit.Event) bool { return e.Stage != audit.StageRequestReceived }
	switch wanted := f.Wanted(tally.Parts, counts); way {
	case "wanted":
		s.Only(t.Context(), f.Wanted(0, nil))
	case "lent":
		wanted.Lends = true
		s.Only(t.Context(), wanted)
	}
	var said strings.Builder
	for r, err := range s.Records() {
		switch {
		case err != nil:
			fmt.Fprintf(&said, "error %v", err)
			if bad, ok := errors.AsType[*query.BadLine](err); ok {
				fmt.Fprintf(&said, " gap %v bytes %d torn %v", bad.IsGap, bad.Bytes, bad.Torn)
			}
			fmt.Fprintln(&said)
			continue
		case r.Missing > 0:
			fmt.Fprintf(&said, "%d missing before %d\n", r.Missing, r.Seq)
		}
		if f.Match(&r.Event) && counts(&r.Event) {
			tally.Add(&r.Event)
			kept := r.Keep()
			line, err := audit.Encode(nil, kept.Event)
			fmt.Fprintf(&said, "%s %d %q loose %q %v, %q %v\n", r.File, r.Line, kept.Raw, r.Loose, r.IsBroken, line, err)
		}
	}
	for _, g := range tally.Groups() {
		fmt.Fprintf(&said, "%+v\n", *g)
	}
	fmt.Fprintf(&said, "%+v unseen %q doubts %v\n", tally.Rest, f.Unseen(), f.Doubts())
	for _, l := range s.Logs() {
		fmt.Fprintf(&said, "%+v %v %d %q %v\n", l.Standing(), l.Silent(), l.Loose, l.First, l.Unread)
	}
	return said.String()
}

// pick returns one of a few values, or the zero value.
func pick[T any](r *rand.Rand, values ...T) (v T) {
	if i := r.IntN(len(values) + 1); i < len(values) {
		v = values[i]
	}
	return v
}

// one returns one of a few values.
func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// maybe returns nil now and then.
func maybe[T any](r *rand.Rand, v T) *T {
	if r.IntN(4) == 0 {
		return nil
	}
	return &v
}

var (
	someTexts = append(hostile.Texts(), "a", "A", "ab", "R7", "r7", "K", "\u212a", "\u0130", "driver", "csi-proxy-disk-v1", `C:\a\b`, `c:\A`, `\\.\pipe\csi-proxy-disk-v1`, audit.CutMark,
		"x[12 bytes cut]", audit.DoubtSeveral, audit.TokenSeveral, audit.TokenStale, "v1", "write", "7", "OK", "PermissionDenied", "0123456789")
	someTime = time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC)
)

// someEvent is a record with any of the fields that there are.
func someEvent(r *rand.Rand, seq uint64) audit.Event {
	text := func() string { return pick(r, someTexts...) }
	at := func() time.Time { return someTime.Add(time.Duration(r.IntN(240)) * time.Second) }
	e := audit.Event{
		V: audit.Version, Seq: seq, Session: "S", ID: text(), Time: at(), IntentSeq: pick(r, uint64(3)),
		Type: one(r, audit.TypeRequest, audit.TypeRequest, audit.TypeConnection, audit.TypeAdmission, audit.TypeLog),
		Stage: one(r, audit.StageRequestReceived, audit.StageResponseComplete, audit.StagePanic, audit.StageOrphaned, audit.StageSummary, audit.StageSummary,
			audit.StageConnectionClosed, audit.StageLogOpen),
		Who: maybe(r, audit.Who{
			Assurance: pick(r, "pod", "process", "none"), Process: maybe(r, audit.WhoProcess{PID: pick(r, uint32(7)), Exe: text(), Start: pick(r, someTime)}),
			User: maybe(r, audit.WhoUser{SID: text(), Name: text()}), Pod: maybe(r, audit.WhoPod{Namespace: text(), Name: text(), UID: text(), ServiceAccount: text()}),
			Container: maybe(r, audit.WhoContainer{ID: text(), Name: text(), Image: text()}), Token: r.IntN(2) == 0, TokenID: text(), TokenState: text(), Doubt: text(), Host: r.IntN(2) == 0,
		}),
		What: maybe(r, audit.What{
			Pipe: text(), Group: text(), Version: text(), Method: text(), FullMethod: text(), Verb: text(), MoreTargets: pick(r, 2), Params: pick(r, []byte(`{"a":"C:\\x"}`)),
			Targets: pick(r, []audit.Target{{Kind: pick(r, "path", "pipe", "cut", "share"), Value: text(), Canonical: text()}}, []audit.Target{{Value: text()}, {Kind: "path", Value: text()}}),
		}),
		Decision: maybe(r, audit.Decision{
			Effect: audit.EffectDeny, Reason: text(), Rule: text(), Mode: pick(r, "Enforce", "LogOnly"), Policy: maybe(r, audit.Policy{Name: text(), Revision: text(), Bundle: pick(r, uint64(7))}),
		}),
		Outcome: maybe(r, audit.Outcome{
			Result: one(r, audit.ResultOK, audit.ResultDenied, audit.ResultRejected, audit.ResultRejected), Code: text(), Error: text(), Count: pick(r, uint64(1), 2, 9), First: pick(r, at()),
			LatencyUS: pick(r, int64(5), -1),
		}),
		Corr: maybe(r, audit.Corr{Conn: text()}), Where: maybe(r, audit.Where{Node: text()}),
	}
	if r.IntN(3) == 0 {
		e.Decision = nil
	}
	return e
}

// misspelt is a line that differs from the writer's form in one thing, or not at all.
func misspelt(r *rand.Rand, line []byte) []byte {
	changes := [][2]string{
		{`"a"`, `"\u0061"`}, {`R7`, `\u00527`}, {`"id"`, `"i\u0064"`}, {`"id":`, `"id":"x","id":`}, {`,"id"`, ` ,"id"`}, {`"seq":`, `"seq": `}, {`"time":"2`, `"time":"x`},
		{`"reason":"`, "\"reason\":\"\xff"}, {`"reason":"`, "\"reason\":\"\u212a"}, {`"result":"`, `"result":"x`}, {`"effect":"`, `"effect":"x`}, {`"method":`, `"Method":`}, {`"params":{`, `"params":{"a":1,`},
		{`"v":1`, `"v":2`}, {`"start":"2`, `"start":"-2`}, {`{"v"`, `[{"v"`}, {`"who":{`, `"who":{"who":{},`}, {`"type":"`, `"type":"x`}, {`"conn":`, `"conn":null,"conn":`}, {`"targets":[`, `"targets":[null,`}, {`"effect":"deny",`, ``},
	}
	if i := r.IntN(3 * len(changes)); i < len(changes) {
		return bytes.Replace(line, []byte(changes[i][0]), []byte(changes[i][1]), 1)
	}
	return line
}

// someTerms are terms of filters with values that some records have.
func someTerms() (terms []string) {
	for _, key := range query.Keys() {
		for _, value := range append(query.Words(key), "", "R7", "a", "*a*", "k", "i", "driver", `C:\a`, `\\.\pipe\csi-proxy-disk-v1`, "disk-v1", "7", "7-9", "OK", "yes", "no", "v1", "2026-03-01T12:00", "a/a", "write") {
			for _, is := range []string{"=", "!="} {
				term := key + is + `"` + value + `"`
				if (&query.Filter{}).Parse(term, time.Now()) == nil {
					terms = append(terms, term)
				}
			}
		}
	}
	return terms
}

// What is read of records that nobody wants, and what is not, changes nothing that a reader learns.
func TestWantedRecordsAreThoseThatFit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var log bytes.Buffer
	refused := audit.Event{ // whose parameters say that it was read, so that it names no target
		V: audit.Version, Seq: 1, Session: "S", Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: someTime, ID: "unread",
		What: &audit.What{FullMethod: "/v1.X/Y", Params: []byte(`{"a":1}`)}, Outcome: &audit.Outcome{Result: audit.ResultRejected},
	}
	unread := refused
	unread.What = &audit.What{FullMethod: "/v1.X/Y"}
	events := []audit.Event{refused, unread}
	for seq := range uint64(80) {
		events = append(events, someEvent(r, seq+1))
	}
	for i, e := range events {
		line, err := audit.Encode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if i > 1 {
			line = misspelt(r, line)
		}
		log.Write(line)
	}
	terms, by := someTerms(), query.TallyKeys()
	filters := []string{"", "target=a", "pipe=a", `path=C:\a`, "target!=a"}
	for _, i := range r.Perm(len(terms))[:min(len(terms), 200)] {
		filters = append(filters, terms[i])
	}
	for range 25 {
		filters = append(filters, strings.Join([]string{terms[r.IntN(len(terms))], terms[r.IntN(len(terms))]}, " "))
	}
	hits := 0
	for i, filter := range filters {
		if (&query.Filter{}).Parse(filter, time.Now()) != nil { // since twice
			continue
		}
		var want string
		for _, way := range ways {
			s, err := query.Open([]string{"-"}, bytes.NewReader(log.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			got := found(t, way, s, filter, by[i%len(by)])
			if way == "all" {
				want = got
				hits += strings.Count(got, "loose")
			}
			if want != got {
				t.Fatalf("%s, by %s: all records (-) and %s (+) differ:\n%s", filter, by[i%len(by)], way, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		}
	}
	if hits < 3*len(filters) {
		t.Errorf("%d filters found only %d records", len(filters), hits)
	}
}

// The same of directories that were spoiled, on several processors and on one.
func TestWantedRecordsOfSpoiledLogs(t *testing.T) {
	files, keys := longLog(t, 900, 128<<10)
	count := 4
	if testing.Short() {
		count = 2
	}
	r := rand.New(rand.NewPCG(7, 8))
	filters := []string{"", "id=hostile", "id=7", "type=connection", "seq=300-310", "reason=*owned*", "method!=x* id=hostile", "since=2026-03-01 until=2026-03-02"}
	for n := range count {
		spoiled := maps.Clone(files)
		var what []string
		for range min(n, 1+r.IntN(3)) {
			what = append(what, spoil(t, r, spoiled))
		}
		dir, filter := put(t, spoiled), filters[r.IntN(len(filters))]
		for how, open := range map[string]func() (*query.Source, error){
			"read": func() (*query.Source, error) { return query.Open([]string{dir}, nil) },
			"verified": func() (*query.Source, error) {
				return query.OpenVerified(t.Context(), []string{dir}, nil, evidence.VerifyOptions{Keys: keys})
			},
		} {
			var want []string
			for _, processors := range []int{1, 3} {
				for _, way := range ways {
					got := onProcessors(t, processors, way, filter, open)
					if want == nil {
						want = got
					}
					if !slices.Equal(want, got) {
						t.Fatalf("%s, %s, %q: all records (-) and %s on %d processors (+) differ:\n%s", strings.Join(what, "; "), how, filter, way, processors, cmp.Diff(want, got))
					}
				}
			}
		}
	}
}

func onProcessors(t *testing.T, processors int, way, filter string, open func() (*query.Source, error)) []string {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	s, err := open()
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(found(t, way, s, filter, "caller,method"), "\n")
}

func FuzzWanted(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 10))
	terms, by := someTerms(), query.TallyKeys()
	for seq := range uint64(50) {
		line, err := audit.Encode(nil, someEvent(r, seq+1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.TrimSuffix(misspelt(r, line), []byte("\n")), uint16(r.IntN(1<<16)), uint16(r.IntN(1<<16)))
	}
	f.Fuzz(func(t *testing.T, line []byte, term, key uint16) {
		filter := terms[int(term)%len(terms)]
		var want string
		for _, way := range ways {
			s, err := query.Open([]string{"-"}, bytes.NewReader(append(bytes.Clone(line), '\n')))
			if err != nil {
				t.Fatal(err)
			}
			got := found(t, way, s, filter, by[int(key)%len(by)])
			if way == "all" {
				want = got
			}
			if want != got {
				t.Errorf("%s: all records tell\n%s\nand %s\n%s", filter, want, way, got)
			}
		}
	})
}

// A search that finds nothing can be interrupted, and a log that was not read to its end proves nothing.
func TestReadingForNothingEndsWhenItIsInterrupted(t *testing.T) {
	files, keys := longLog(t, 1500, 256<<10)
	s, err := query.OpenVerified(t.Context(), []string{put(t, files)}, nil, evidence.VerifyOptions{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int64
	s.Only(ctx, query.Wanted{Has: func(*audit.Event) bool {
		if asked.Add(1) == 10 {
			cancel()
		}
		return false
	}})
	for r, err := range s.Records() {
		if err != nil || r.Seq > 1 {
			t.Errorf("record %d: %v", r.Seq, err)
		}
	}
	if is := s.Logs()[0].Standing(); is.Verified != 0 || !strings.Contains(is.Why, query.NotTheSame) {
		t.Errorf("%+v of a log that was not read to its end", is)
	}
}
