package segment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// denial is the one record of a call that was refused, some 700 bytes long.
func denial(id string) *audit.Event {
	return &audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: id,
		What:    &audit.What{Pipe: "csi-proxy-filesystem-v1", Method: "Rmdir"},
		Outcome: &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Error: strings.Repeat("x", 400)},
	}
}

// flood appends denials until they are no longer taken, and returns how many were.
func flood(t *testing.T, w *Writer, most int) int {
	t.Helper()
	for i := range most {
		_, err := w.Append(context.Background(), denial(fmt.Sprint("denied-", i)))
		if errors.Is(err, ErrRefusals) {
			return i
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return most
}

func TestRefusalsCauseNoRemoval(t *testing.T) {
	disk, l := newMemory(), newLedger()
	l.pad = 500
	o := small()
	o.SegmentBytes, o.KeepBytes, o.Admitted = 16*audit.MaxRecord, 64*audit.MaxRecord, 0
	w := open(t, disk, o)
	l.call(t, w, "an earlier deed")
	part := o.KeepBytes / 8
	for range 3 { // a proxy that is started again has not forgotten
		flood(t, w, 1000)
		for i := range 1000 {
			summary := denial(fmt.Sprint("summary-", i))
			summary.Stage, summary.Outcome.Count, summary.Outcome.First = audit.StageSummary, 1000, time.Now()
			if _, err := w.Append(context.Background(), summary); errors.Is(err, ErrRefusals) {
				if i == 0 && l.acknowledged["second/ResponseComplete"] == 0 {
					t.Error("not one summary is taken behind the single refusals")
				}
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if s := w.Stats(); s.Pruned != 0 || s.Bytes > 2*part+10*audit.MaxRecord || s.Err != nil {
			t.Errorf("%+v, and refusals may take %d bytes", s, part)
		}
		l.call(t, w, "second") // calls are not affected
		shut(t, w)
		w = open(t, disk, o)
	}
	if n := flood(t, w, 10); n != 0 {
		t.Errorf("after a restart %d more refusals are taken", n)
	}
	// Calls push refusals out, and make room for others.
	for i := 0; w.Stats().Pruned < 4; i++ {
		l.call(t, w, fmt.Sprint("call-", i))
	}
	if n := flood(t, w, 1); n != 1 {
		t.Error("old refusals are gone, and new ones are not taken")
	}
	shut(t, w)
}

func TestRefusalsLeaveRoomForCallsOnTheDisk(t *testing.T) {
	disk, l := newMemory(), newLedger()
	l.pad = 500
	disk.room = 2 << 20
	o := small()
	o.SegmentBytes = 1 << 20
	w := open(t, disk, o)
	if n := flood(t, w, 10_000); n == 0 || n == 10_000 {
		t.Fatalf("%d refusals were taken on a disk of 2 MiB", n)
	}
	if s := w.Stats(); s.Err != nil || s.Refused != 0 {
		t.Errorf("%+v: calls are still taken", s)
	}
	for i := range 50 { // each has two records of some 900 bytes
		id := fmt.Sprint("call-", i)
		if l.call(t, w, id); l.acknowledged[id+"/ResponseComplete"] == 0 {
			t.Fatalf("call %d has no room", i)
		}
	}
	shut(t, w)
	events := records(t, disk)
	l.judge(t, events)
	settled(t, events)
}

func TestALogThatContinuesDoesNotCallARefusalLost(t *testing.T) {
	disk := newMemory()
	disk.room = 1 << 20
	o := small()
	o.SegmentBytes, o.OnFailure = 1<<20, Continue
	w := open(t, disk, o)
	if n := flood(t, w, 10_000); n == 10_000 {
		t.Fatal("every refusal was taken")
	}
	if s := w.Stats(); s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	shut(t, w)
}

// Strangers cause as many refusals as they like, and what a driver is refused shows an attack on it: the one must not hide the other.
func TestStrangersLeaveRoomForRefusalsOfNamedCallers(t *testing.T) {
	disk := newMemory()
	o := small()
	o.SegmentBytes, o.KeepBytes = 16*audit.MaxRecord, 64*audit.MaxRecord
	var told []error
	o.OnFault = func(err error) { told = append(told, err) }
	w := open(t, disk, o)
	part := o.KeepBytes / 8
	until := func(stage audit.Stage, isStranger bool) (n int64) {
		for i := range 10_000 {
			e := denial(fmt.Sprint(stage, isStranger, i))
			if stage == audit.StageSummary {
				e.Stage, e.Outcome.Count, e.Outcome.First = stage, 1000, time.Now()
			}
			ctx := context.Background()
			if isStranger {
				ctx = OfStranger(ctx)
			}
			if _, err := w.Append(ctx, e); errors.Is(err, ErrRefusals) {
				return n
			} else if err != nil {
				t.Fatal(err)
			}
			n++
		}
		t.Fatalf("%s: all are taken", stage)
		return 0
	}
	ofStrangers := until(audit.StageResponseComplete, true)
	summaries := until(audit.StageSummary, true)
	if ofStrangers == 0 || summaries == 0 || w.Stats().Bytes > part/2+audit.MaxRecord {
		t.Errorf("strangers have %d records and %d summaries in %d bytes, and the part is %d", ofStrangers, summaries, w.Stats().Bytes, part)
	}
	if len(told) > 0 {
		t.Errorf("what strangers may not is told: %v", told)
	}
	if named := until(audit.StageResponseComplete, false); named < ofStrangers/4 {
		t.Errorf("named callers have %d records, and strangers %d", named, ofStrangers)
	}
	if n := until(audit.StageSummary, false); n < summaries {
		t.Errorf("named callers have %d summaries, and strangers %d", n, summaries)
	}
	until(audit.StageResponseComplete, false)
	if len(told) != 1 || !errors.Is(told[0], ErrRefusals) || w.Stats().Err != nil {
		t.Errorf("told %v", told)
	}
	shut(t, w)
	if w = open(t, disk, o); until(audit.StageSummary, true) != 0 {
		t.Error("after a start strangers have more than their part")
	}
	shut(t, w)
}

// A connection on which a call was admitted is no refusal however it ends: it must not wait for room that refusals have used up, since no call is admitted
// while a record waits.
func TestTheEndOfAnActNeedsNoRoomOfRefusals(t *testing.T) {
	disk := newMemory()
	o := small()
	o.SegmentBytes, o.KeepBytes = 16*audit.MaxRecord, 64*audit.MaxRecord
	w := open(t, disk, o)
	if n := flood(t, w, 10_000); n == 0 || n == 10_000 {
		t.Fatalf("%d refusals are taken", n)
	}
	closed := func(result string) *audit.Event {
		return &audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: "c", What: &audit.What{Pipe: "p"}, Outcome: &audit.Outcome{Result: result}}
	}
	for _, result := range []string{audit.ResultIdle, audit.ResultRejected} {
		err := error(nil)
		for i := 0; err == nil && i < 10; i++ { // they are shorter than those before
			_, err = w.Append(context.Background(), closed(result))
		}
		if !errors.Is(err, ErrRefusals) {
			t.Errorf("%s, and nothing was admitted: %v", result, err)
		}
		if _, err := w.Append(OfAct(context.Background()), closed(result)); err != nil {
			t.Errorf("%s, and something was admitted: %v", result, err)
		}
	}
	shut(t, w)
}
