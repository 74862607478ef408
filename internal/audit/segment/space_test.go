package segment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestAFullDiskRefusesNewCallsWhileAdmittedOnesFinish(t *testing.T) {
	disk, l := newMemory(), newLedger()
	l.pad = 500
	disk.room = 600_000
	w := open(t, disk, Options{SegmentBytes: 100_000, Admitted: 8, Retry: time.Nanosecond})
	var under []string
	for i := 0; ; i++ {
		id := fmt.Sprint(i)
		if err := l.append(t, w, request(id, audit.StageRequestReceived, 0)); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatalf("a full disk: %v", err)
			}
			break
		}
		if under = append(under, id); len(under) == 8 { // eight are always under way
			_ = l.append(t, w, request(under[0], audit.StageResponseComplete, l.acknowledged[under[0]+"/RequestReceived"]))
			under = under[1:]
		}
	}
	for i := 0; ; i++ { // what nothing was kept for takes what is left, and no more
		if _, err := w.Append(context.Background(), request(fmt.Sprint("denied-", i), audit.StageResponseComplete, 0)); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatalf("a denial on a full disk: %v", err)
			}
			break
		}
	}
	for _, id := range under {
		if err := l.append(t, w, request(id, audit.StageResponseComplete, l.acknowledged[id+"/RequestReceived"])); err != nil {
			t.Errorf("the end of %s: %v", id, err)
		}
	}
	if s := w.Stats(); s.Poisoned != 0 || s.Open != 0 {
		t.Errorf("%+v", s)
	}
	disk.set(func() { disk.room += 1 << 20 })
	l.call(t, w, "after")
	if l.acknowledged["after/ResponseComplete"] == 0 {
		t.Error("the disk has room again, and calls are refused")
	}
	shut(t, w)
	events := records(t, disk)
	l.judge(t, events)
	settled(t, events)
}

// A flush that fails on a full disk costs a segment, and what was kept in it.
func TestAFailedFlushOnAFullDiskLosesNoEnd(t *testing.T) {
	disk, l := newMemory(), newLedger()
	w := open(t, disk, Options{Admitted: 8, Retry: time.Nanosecond})
	for i := range 8 {
		_ = l.append(t, w, request(fmt.Sprint(i), audit.StageRequestReceived, 0))
	}
	disk.set(func() {
		disk.room = 0
		failed := false
		disk.fault = func(_ int, what string) (int, error) {
			if what == "sync" && !failed {
				failed = true
				return 0, errFault
			}
			return 0, nil
		}
	})
	for i := range 8 {
		if err := l.append(t, w, request(fmt.Sprint(i), audit.StageResponseComplete, l.acknowledged[fmt.Sprint(i)+"/RequestReceived"])); err != nil {
			t.Errorf("the end of %d: %v", i, err)
		}
	}
	if s := w.Stats(); s.Poisoned != 1 {
		t.Errorf("%+v", s)
	}
	shut(t, w)
	events := records(t, disk)
	l.judge(t, events)
	settled(t, events)
}

// What a segment gives back when the next one is begun may be gone at once.
func TestTheEndsOfOperationsHaveTheirRoomWhenASegmentIsBegun(t *testing.T) {
	disk, l := newMemory(), newLedger()
	disk.room = 8 << 20
	w := open(t, disk, Options{Admitted: 8, SegmentBytes: 64 << 10, Retry: time.Nanosecond})
	l.pad = 4000
	for i := range 8 {
		_ = l.append(t, w, request(fmt.Sprint(i), audit.StageRequestReceived, 0))
	}
	created, steps := false, 0
	disk.set(func() {
		disk.fault = func(_ int, what string) (int, error) {
			if created = created || what == "create"; created {
				if steps++; steps > 2 { // it and its room
					disk.room = 0
				}
			}
			return 0, nil
		}
	})
	for i := range 8 {
		if err := l.append(t, w, request(fmt.Sprint(i), audit.StageResponseComplete, l.acknowledged[fmt.Sprint(i)+"/RequestReceived"])); err != nil {
			t.Errorf("the end of %d: %v", i, err)
		}
	}
	if !created {
		t.Error("no segment was begun")
	}
	shut(t, w)
	events := records(t, disk)
	l.judge(t, events)
	settled(t, events)
}

func TestNoMoreOperationsThanRoomIsKeptFor(t *testing.T) {
	disk := newMemory()
	w := open(t, disk, Options{Admitted: 2})
	defer func() { shut(t, w) }()
	a := mustAppend(t, w, request("a", audit.StageRequestReceived, 0))
	mustAppend(t, w, request("b", audit.StageRequestReceived, 0))
	if _, err := w.Append(context.Background(), request("c", audit.StageRequestReceived, 0)); !errors.Is(err, ErrBusy) {
		t.Fatalf("a third one: %v", err)
	}
	mustAppend(t, w, request("a", audit.StagePanic, a))
	mustAppend(t, w, request("c", audit.StageRequestReceived, 0))
}

// pastRetry waits until the clock has moved, which on some systems takes milliseconds.
func pastRetry() {
	for began := time.Now(); !time.Now().After(began.Add(time.Nanosecond)); {
		runtime.Gosched()
	}
}

func TestAFailingLogFollowsItsOnFailure(t *testing.T) {
	for _, tt := range []struct {
		answer  OnFailure
		refused bool
		shut    int
	}{{FailOperation, true, 0}, {"", true, 0}, {Continue, false, 0}, {Shutdown, true, 1}} {
		t.Run(string(tt.answer), func(t *testing.T) {
			disk, shuts := newMemory(), 0
			var faults []error
			w := open(t, disk, Options{OnFailure: tt.answer, Retry: time.Nanosecond, OnShutdown: func(error) { shuts++ }, OnFault: func(err error) { faults = append(faults, err) }})
			disk.set(func() { disk.fault = func(int, string) (int, error) { return 0, errFault } })
			for range 2 {
				pastRetry()
				if _, err := w.Append(context.Background(), request("a", audit.StageRequestReceived, 0)); (err != nil) != tt.refused || tt.refused && !errors.Is(err, ErrUnavailable) {
					t.Errorf("got %v", err)
				}
			}
			if err := w.Stats().Err; !errors.Is(err, errFault) {
				t.Errorf("stats say %v", err)
			}
			disk.set(func() { disk.fault = nil })
			pastRetry()
			mustAppend(t, w, request("b", audit.StageResponseComplete, 0))
			if err := w.Stats().Err; err != nil || shuts != tt.shut || len(faults) != 3 || faults[2] != nil {
				t.Errorf("%v, shut down %d times, told %v", err, shuts, faults)
			}
			shut(t, w)
			var lost uint64
			for _, e := range records(t, disk) {
				if e.Log != nil {
					lost += e.Log.Lost
				}
			}
			if (lost == 2) != (tt.answer == Continue) {
				t.Errorf("%d records are said to be lost", lost)
			}
		})
	}
}

func TestAClosedLogSaysHowManyRecordsItDropped(t *testing.T) {
	disk := newMemory()
	w := open(t, disk, Options{OnFailure: Continue, Retry: time.Nanosecond})
	disk.set(func() { disk.room = 0 })
	for i := 0; w.Stats().Lost < 3; i++ {
		if i == 10_000 {
			t.Fatal("a full disk has room for all of them")
		}
		if _, err := w.Append(context.Background(), request(fmt.Sprint(i), audit.StageRequestReceived, 0)); err != nil {
			t.Fatal(err)
		}
	}
	lost := w.Stats().Lost
	disk.set(func() { disk.room = -1 })
	shut(t, w)
	var said uint64
	for _, e := range records(t, disk) {
		if e.Log != nil {
			said += e.Log.Lost
		}
	}
	if said != lost {
		t.Errorf("%d records were let go, and the log says %d", lost, said)
	}
}

func TestAllInvalidOptionsAreNamed(t *testing.T) {
	_, err := OpenDisk(t.Context(), newMemory(), Options{SegmentBytes: 1, KeepBytes: 1, KeepAge: -1, OnFailure: Shutdown})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 4 {
		t.Errorf("got %v", err)
	}
	if _, err := OpenDisk(t.Context(), newMemory(), Options{OnFailure: "hope"}); err == nil {
		t.Error("an unknown answer was taken")
	}
}
