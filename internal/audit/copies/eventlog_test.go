package copies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// written is an event log in memory.
type written struct {
	heads []string // kind and number
	texts []string
	err   error
}

var _ winsvc.EventLog = (*written)(nil)

func (w *written) add(kind string, id uint32, text string) error {
	if w.err != nil {
		return w.err
	}
	w.heads, w.texts = append(w.heads, fmt.Sprintf("%s %d", kind, id)), append(w.texts, text)
	return nil
}
func (w *written) Info(id uint32, text string) error    { return w.add("info", id, text) }
func (w *written) Warning(id uint32, text string) error { return w.add("warning", id, text) }
func (w *written) Error(id uint32, text string) error   { return w.add("error", id, text) }
func (w *written) Close() error                         { return errors.New("it is not ours to close") }

func TestEachKindOfRecordHasItsNumber(t *testing.T) {
	result := func(s string) func(*audit.Event) { return func(e *audit.Event) { e.Outcome.Result = s } }
	conn := func(e *audit.Event) {
		e.Type, e.Stage, e.Decision = audit.TypeConnection, audit.StageConnectionClosed, nil
	}
	own := func(g audit.Log) func(*audit.Event) {
		return func(e *audit.Event) {
			*e = audit.Event{V: 1, Seq: 1, Type: audit.TypeLog, Stage: audit.StageLogOpen, Time: e.Time, Session: "S", Log: &g}
		}
	}
	logOnly := func(e *audit.Event) { e.Decision.Effect, e.Decision.Mode = audit.EffectDeny, modeLogOnly }
	for _, tc := range []struct {
		head string
		edit []func(*audit.Event)
	}{
		{"info 201", []func(*audit.Event){func(e *audit.Event) { e.Stage, e.Outcome = audit.StageRequestReceived, nil }}},
		{"info 202", nil},
		{"warning 203", []func(*audit.Event){denied}},
		{"warning 203", []func(*audit.Event){func(e *audit.Event) { e.Decision.Effect = audit.EffectDeny }}},
		{"warning 204", []func(*audit.Event){result(audit.ResultRejected)}},
		{"info 205", []func(*audit.Event){result(audit.ResultError)}},
		{"error 206", []func(*audit.Event){result(audit.ResultPanic)}},
		{"error 206", []func(*audit.Event){denied, func(e *audit.Event) { e.Stage = audit.StagePanic }}},
		{"error 207", []func(*audit.Event){result(audit.ResultOrphaned)}},
		{"error 207", []func(*audit.Event){func(e *audit.Event) { e.Stage = audit.StageOrphaned }}},
		{"warning 208", []func(*audit.Event){logOnly}},
		{"warning 203", []func(*audit.Event){logOnly, result(audit.ResultDenied)}},
		{"info 210", []func(*audit.Event){conn}},
		{"info 210", []func(*audit.Event){conn, result(audit.ResultIdle)}},
		{"warning 211", []func(*audit.Event){conn, result(audit.ResultRejected)}},
		{"warning 211", []func(*audit.Event){conn, func(e *audit.Event) { e.Outcome = nil }}},
		{"info 220", []func(*audit.Event){own(audit.Log{Cause: audit.CauseStart})}},
		{"warning 221", []func(*audit.Event){own(audit.Log{Cause: audit.CauseFailure, Fault: "no space"})}},
		{"warning 221", []func(*audit.Event){own(audit.Log{Lost: 3})}},
		{"warning 221", []func(*audit.Event){own(audit.Log{Cause: audit.CauseStart, TornBytes: 3})}},
		{"warning 221", []func(*audit.Event){own(audit.Log{Cause: audit.CauseStart, Orphaned: 1})}},
		{"warning 221", []func(*audit.Event){own(audit.Log{Cause: audit.CauseMissing})}},
		{"warning 240", []func(*audit.Event){result("unheard of")}},
		{"warning 240", []func(*audit.Event){func(e *audit.Event) { e.Outcome = nil }}},
	} {
		w := &written{}
		l := bytes.TrimSpace(line(t, tc.edit...))
		if err := EventLog(w, All).Send(t.Context(), []Record{{Line: l}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{tc.head}, w.heads); diff != "" {
			t.Errorf("%s: %s", l, diff)
		}
	}
}

func TestAnEventSaysWhoWantedWhatAndHoldsTheRecord(t *testing.T) {
	w := &written{}
	l := bytes.TrimSpace(line(t, denied, func(e *audit.Event) { e.What.Params = []byte(`{"path":"C:\\%TEMP%\\<a>"}`) }))
	if err := EventLog(w, All).Send(t.Context(), []Record{{Line: l}}); err != nil {
		t.Fatal(err)
	}
	head, record, _ := strings.Cut(w.texts[0], "\r\nrecord: ")
	want := strings.Join([]string{
		"Request denied", "method: Mkdir", "full method: /v1.Filesystem/Mkdir", "pipe: csi-proxy-filesystem-v1", `program: C:\driver\node.exe`, "process: 4711",
		"account: S-1-5-18", "namespace: kube-system", "pod: driver-1", "reason: no rule", "audit id: RW7UZ275BXWT453VSXCFNR6NIK",
	}, "\r\n")
	if diff := cmp.Diff(want, head); diff != "" {
		t.Error(diff)
	}
	got, err := audit.Parse([]byte(record))
	if err != nil {
		t.Fatal(err)
	}
	original, err := audit.Parse(l)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(got.What.Params, &a) != nil || json.Unmarshal(original.What.Params, &b) != nil {
		t.Fatal("params are no JSON")
	}
	got.What.Params, original.What.Params = nil, nil
	if diff := cmp.Diff(original, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Error(diff)
	}
}

func TestNothingInAnEventActs(t *testing.T) {
	hostile := "a\nb\r\x1b[31m\u202etxt\u2028</script>\x00\x7f\u009b31m\xff\U000e0041=cmd()%1%%1833%n\r\nrule: forged"
	e := func(e *audit.Event) {
		e.ID, e.Who.Process.Exe, e.Who.User.SID, e.Who.Pod.Namespace, e.Who.Pod.Name = hostile, hostile, hostile, hostile, hostile
		e.What.Pipe, e.What.Method, e.What.FullMethod, e.Decision.Rule, e.Decision.Reason, e.Outcome.Error = hostile, hostile, hostile, hostile, hostile, hostile
		e.What.Targets = []audit.Target{{Kind: "path", Value: hostile}}
	}
	for name, l := range map[string][]byte{
		"a record":                           bytes.TrimSpace(line(t, e)),
		"a record whose text is not escaped": bytes.ReplaceAll(line(t), []byte("driver-1"), []byte("\u202e\u009b%1")),
		"no JSON":                            []byte(hostile),
		"a record with a control in it":      bytes.ReplaceAll(bytes.TrimSpace(line(t)), []byte("driver-1"), []byte("a\x1b[2J\x00\n%1")),
		"a long line of percent signs":       bytes.Repeat([]byte("%"), audit.MaxRecord),
		"a long line of NULs":                make([]byte, audit.MaxRecord),
		"a long line of astral text":         bytes.Repeat([]byte("𝔸"), 20_000),
	} {
		w := &written{}
		if err := EventLog(w, All).Send(t.Context(), []Record{{Line: l}, {Checkpoint: l}}); err != nil {
			t.Fatal(err)
		}
		for _, text := range w.texts {
			if n := len(utf16.Encode([]rune(text))); n > mostEvent {
				t.Errorf("%s: %d characters", name, n)
			}
			for i, part := range strings.Split(text, "\r\n") {
				if i > 0 && !regexp.MustCompile(`^(method|full method|pipe|program|process|account|namespace|pod|rule|reason|error|audit id|record): `).MatchString(part) {
					t.Errorf("%s: a line of its own: %q", name, part)
				}
				if strings.Contains(part, "%") || strings.HasPrefix(part, "rule: forged") {
					t.Errorf("%s: %q", name, part)
				}
				for _, r := range part {
					if !inert.IsInert(r) {
						t.Fatalf("%s: %U stands in it as it is", name, r)
					}
				}
			}
		}
	}
}

func TestDeniedTakesOnlyWhatWentWrong(t *testing.T) {
	w := &written{}
	c := mustNew(t, Options{Destinations: []Destination{EventLog(w, Denied)}, Queue: 20_000})
	for range 1000 { // calls that are fine do not take the room
		c.Record(line(t))
	}
	c.Record(line(t, denied))
	c.Record([]byte("no record\n"))
	c.Record(line(t, func(e *audit.Event) { e.Type = audit.TypeLog }))
	mustClose(t, c)
	if diff := cmp.Diff([]string{"warning 203", "warning 240", "info 220"}, w.heads); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Stats{{Name: "eventlog", Sent: 3}}, c.Stats()); diff != "" {
		t.Error(diff)
	}
}

func TestTheEventLogTakesACheckpoint(t *testing.T) {
	w := &written{}
	c := mustNew(t, Options{Destinations: []Destination{EventLog(w, Denied)}})
	const note = "pipeguard.dev/audit/n\n7\nAAAA=\n\n— pipeguard.dev/audit/n AbCd+/=\n"
	if err := c.Checkpoints()[0].Send(t.Context(), checkpoint(note, false)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, c)
	if diff := cmp.Diff([]string{"info 230"}, w.heads); diff != "" {
		t.Fatal(diff)
	}
	var back struct{ Type, Note string }
	_, doc, _ := strings.Cut(w.texts[0], "record: ")
	if err := json.Unmarshal([]byte(doc), &back); err != nil || back.Note != note {
		t.Errorf("%q came back as %q, %v", note, back.Note, err)
	}
}

func TestAnEventLogThatRefusesIsCounted(t *testing.T) {
	w := &written{err: errors.New("the log is full")}
	var told troubles
	c := mustNew(t, Options{Destinations: []Destination{EventLog(w, All)}, OnLoss: told.add})
	for range 5 {
		c.Record(line(t))
	}
	if err := c.Checkpoints()[0].Send(t.Context(), checkpoint("n", false)); err == nil || !strings.Contains(err.Error(), "the log is full") {
		t.Errorf("checkpoint: %v", err)
	}
	mustClose(t, c)
	if s := c.Stats()[0]; s.Failed != 5 || s.Sent != 0 {
		t.Errorf("%+v", s)
	}
	if all := told.texts(); len(all) == 0 || !strings.Contains(all[0], "the log is full") {
		t.Errorf("told %q", all)
	}
	w.err = nil
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var partial *PartialError
	if err := EventLog(w, All).Send(ctx, []Record{{Line: []byte("{}")}, {Line: []byte("{}")}}); !errors.As(err, &partial) || partial.Failed != 2 || len(w.texts) != 0 {
		t.Errorf("after the end: %v, %d events", err, len(w.texts))
	}
}
