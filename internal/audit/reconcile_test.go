package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func request(id string, stage Stage, intent uint64, result string) *Event {
	e := &Event{Type: TypeRequest, Stage: stage, ID: id, IntentSeq: intent}
	if result != "" {
		e.Outcome = &Outcome{Result: result, Code: "OK"}
	}
	return e
}

// opening is the first record of a session that found a log which ended like that.
func opening(found Log) *Event { return &Event{Type: TypeLog, Stage: StageLogOpen, Log: &found} }

// closing is its last record.
func closing() *Event { return &Event{Type: TypeLog, Stage: StageLogClose} }

func mustAppend(t testing.TB, w Writer, e *Event) uint64 {
	t.Helper()
	seq, err := w.Append(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// report reconciles a log.
func report(t testing.TB, log string) Report {
	t.Helper()
	r, err := reconcile(read(log))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines makes a log of events, numbered, in one session that was opened and closed.
func lines(t testing.TB, events ...*Event) []string {
	t.Helper()
	var out bytes.Buffer
	s := NewStream(&out)
	for _, e := range slices.Concat([]*Event{opening(Log{})}, events, []*Event{closing()}) {
		mustAppend(t, s, e)
	}
	return strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// read returns the records of a log, and a *LineError in the place of each line that is none.
func read(log string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		number := 0
		for line := range strings.Lines(log) {
			number++
			text, isWhole := strings.CutSuffix(line, "\n")
			e, err := Parse([]byte(text))
			if !isWhole {
				err = ErrTorn
			}
			if err != nil {
				err = &LineError{Line: number, Bytes: len(text), Torn: !isWhole, Err: err}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// reconcile is Reconcile for a log that removed nothing.
func reconcile(records iter.Seq2[Event, error]) (Report, error) {
	return Reconcile(records, func() (uint64, error) { return 0, nil })
}

func TestReconcileEndsWithTheReadersError(t *testing.T) {
	if _, err := reconcile(func(yield func(Event, error) bool) { yield(Event{}, io.ErrClosedPipe) }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

// story is a log without a fault: an admitted call, a denial, a panic, a connection.
func story(t testing.TB) []string {
	return lines(t,
		request("a", StageRequestReceived, 0, ""), // 2
		request("b", StageResponseComplete, 0, ResultDenied),
		request("a", StageResponseComplete, 2, ResultOK),
		request("c", StageRequestReceived, 0, ""), // 5
		request("c", StagePanic, 5, ResultPanic),
		request("d", StagePanic, 0, ResultPanic),
		&Event{Type: TypeConnection, Stage: StageConnectionClosed, ID: "n", Outcome: &Outcome{Result: ResultIdle}},
		&Event{Type: TypeAdmission, Stage: StageResponseComplete, ID: "m"},
	) // LogClose is 10
}

func TestReconcileOfAWholeLog(t *testing.T) {
	r, err := reconcile(read(strings.Join(story(t), "") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Report{Records: 10, Sessions: 1, Intents: 2, Terminals: 4, Connections: 1, Admissions: 1}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

func TestReconcileFinds(t *testing.T) {
	without := func(i int) func([]string) []string {
		return func(l []string) []string { return append(l[:i:i], l[i+1:]...) }
	}
	replace := func(i int, old, new string) func([]string) []string {
		return func(l []string) []string { l[i] = strings.Replace(l[i], old, new, 1); return l }
	}
	tests := []struct {
		name   string
		change func([]string) []string
		want   string
	}{
		{"a record that is missing", without(2), "expected number 3"},
		{"a LogOpen that is missing", without(0), "expected number 1"},
		{"a record that is there twice", func(l []string) []string { return append(l[:3:3], l[2:]...) }, "expected number 4"},
		{"two records in each other's place", func(l []string) []string { l[2], l[3] = l[3], l[2]; return l }, "expected number 3"},
		{"a line that is no record", replace(2, "{", "["), "not declared here"},
		{"an intent that is missing, its number filled", replace(1, `"RequestReceived"`, `"ResponseComplete","outcome":{"result":"denied","code":"","latency_us":0}`), "second terminal"},
		{"an end without its intent", replace(3, `"id":"a"`, `"id":"z"`), "ends an operation that has no intent"},
		{"an end of another intent", replace(3, `"intent_seq":2`, `"intent_seq":5`), "the intent with this id is 2"},
		{"an end without an outcome", replace(3, `"outcome":{"result":"ok","code":"OK","latency_us":0}`, `"corr":{}`), "without an outcome"},
		{"a panic after an intent that is not there", replace(5, `"id":"c"`, `"id":"z"`), "ends an operation that has no intent"},
		{"a second end", replace(2, `"id":"b"`, `"id":"a"`), "second terminal"},
		{"a second intent", replace(4, `"id":"c"`, `"id":"a"`), "second intent"},
		{"an unknown type", replace(2, `"type":"request"`, `"type":"other"`), "unknown type"},
		{"an unknown stage", replace(2, `"ResponseComplete"`, `"Middle"`), "unknown stage"},
		{"an opening within a session", replace(2, `"type":"request","stage":"ResponseComplete"`, `"type":"log","stage":"LogOpen","log":{}`), "opened once"},
		{"a line that is no record, at the end", replace(9, "{", "["), "line 10"},
		{"another beginning than the writer saw", replace(0, `"log":{}`, `"log":{"previous_session":"x","previous_seq":9}`), `the last record was 9 of session "x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := reconcile(read(strings.Join(tt.change(story(t)), "") + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(fmt.Sprint(r.Faults), tt.want) {
				t.Errorf("faults %v, want %q", r.Faults, tt.want)
			}
		})
	}
}

func TestReconcileFindsWhatWasCutOffBetweenSessions(t *testing.T) {
	var out bytes.Buffer
	first, second := NewStream(&out), NewStream(&out)
	mustAppend(t, first, opening(Log{}))
	mustAppend(t, first, request("a", StageResponseComplete, 0, ResultDenied))
	mustAppend(t, first, closing())
	mustAppend(t, second, opening(Log{PreviousSession: first.session, PreviousSeq: 3}))
	if r := report(t, out.String()); r.FaultCount != 0 || r.Sessions != 2 || r.Records != 4 {
		t.Errorf("the whole log: %+v", r)
	}
	all := strings.SplitAfter(out.String(), "\n")
	if r := report(t, strings.Join(append(all[:2:2], all[3:]...), "")); r.FaultCount != 1 || !strings.Contains(r.Faults[0].Problem, "the last record was 3") {
		t.Errorf("without the first session's end: %v", r.Faults)
	}
}

func TestReconcileTakesATornTailThatTheNextSessionDeclares(t *testing.T) {
	const torn = `{"v":1,"seq":3,"type":"requ`
	var out bytes.Buffer
	first, second := NewStream(&out), NewStream(&out)
	mustAppend(t, first, opening(Log{}))
	mustAppend(t, first, request("a", StageResponseComplete, 0, ResultDenied))
	out.WriteString(torn) // the process died while it wrote
	if r := report(t, out.String()); !r.TornTail || r.FaultCount != 0 {
		t.Errorf("before the next start: %+v", r)
	}
	out.WriteString("\n")
	before := out.String()
	mustAppend(t, second, opening(Log{PreviousSession: first.session, PreviousSeq: 2, TornBytes: len(torn)}))
	if r := report(t, out.String()); r.TornTail || r.FaultCount != 0 || r.Sessions != 2 {
		t.Errorf("after it: %+v", r)
	}
	out.Reset()
	mustAppend(t, NewStream(&out), opening(Log{PreviousSession: first.session, PreviousSeq: 2, TornBytes: len(torn) - 1}))
	if r := report(t, before+out.String()); r.FaultCount == 0 {
		t.Error("a torn line of another length was declared")
	}
}

func TestReconcileFindsAnIDInASecondSession(t *testing.T) {
	var out bytes.Buffer
	previous := Log{}
	for range 2 {
		s := NewStream(&out)
		mustAppend(t, s, opening(previous))
		intent := mustAppend(t, s, request("a", StageRequestReceived, 0, ""))
		end := mustAppend(t, s, request("a", StageResponseComplete, intent, ResultOK))
		previous = Log{PreviousSession: s.session, PreviousSeq: end}
	}
	if r := report(t, out.String()); r.FaultCount != 2 || r.Sessions != 2 || r.Records != 6 { // its second intent and its second end
		t.Errorf("report %+v", r)
	}
}

func TestReconcileListsOpenIntents(t *testing.T) {
	r, err := reconcile(read(strings.Join(story(t)[:5], "")))
	if err != nil || r.FaultCount != 0 || len(r.Open) != 1 || r.Open[0].ID != "c" || r.Open[0].Seq != 5 {
		t.Errorf("error %v, report %+v", err, r)
	}
}

func TestReconcileAcceptsWhatWasWrittenAgain(t *testing.T) {
	again := request("a", StageResponseComplete, 2, ResultOK)
	again.Again = true
	all := lines(t, request("a", StageRequestReceived, 0, ""), request("a", StageResponseComplete, 2, ResultOK), again,
		request("x", StageResponseComplete, 9, ResultRejected)) // its intent was in doubt, and is not there
	r, err := reconcile(read(strings.Join(all, "") + "\n"))
	if err != nil || r.FaultCount != 0 || r.Repeated != 1 || r.Terminals != 2 {
		t.Errorf("error %v, report %+v", err, r)
	}
}

func TestReconcileBoundsItsFaults(t *testing.T) {
	r, err := reconcile(read(strings.Repeat("x\n", 5000)))
	if err != nil || len(r.Faults) != maxFaults || r.FaultCount != 5000 {
		t.Errorf("error %v, %d faults of %d", err, len(r.Faults), r.FaultCount)
	}
}

func FuzzReconcile(f *testing.F) {
	f.Add(strings.Join(story(f), ""))
	f.Add("{}\nnull\n[]\n\n\"\n")
	f.Add(`{"v":1,"seq":1,"session":"s","type":"request","stage":"Panic"}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		records := 0
		for _, err := range read(text) {
			if err == nil {
				records++
			}
		}
		r, err := reconcile(read(text))
		if err != nil || r.Records != records {
			t.Errorf("%d records of %d are counted, error %v", r.Records, records, err)
		}
	})
}
