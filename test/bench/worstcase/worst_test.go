//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/program"
)

// TestMain makes this program a process of the hostile pod if it was started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-hostile" {
		main()
		return
	}
	os.Exit(m.Run())
}

// mostAtOnce is what one caller may have recorded of its refusals at once, in bytes. An attack of seconds says nothing of an hour.
const mostAtOnce = 2e6

// The command does the same for longer. Times are not looked at here: they are the machine's.
func TestTheWorstThatAHostilePodCanDoIsBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", "pgworst") // a test's own directory has a long name, and that of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe, err := program.Build(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{dir: dir, exe: exe, calls: 100, fresh: 2, least: time.Second}
	results, err := s.all(ctx, "", t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.memory > mostMemory {
			t.Errorf("%s: %d KiB above idle", r.name, r.memory>>10)
		}
		if r.failed > 0 {
			t.Errorf("%s: %d of %d calls of a driver failed: %v", r.name, r.failed, r.calls, r.first)
		}
		if r.bytes > mostAtOnce {
			t.Errorf("%s: %d bytes of records", r.name, r.bytes)
		}
	}
	if len(results) != len(attacks) {
		t.Errorf("%d of %d attacks were measured", len(results), len(attacks))
	}
}

func TestTheTableGoesToItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.md")
	table := markdown(&stage{}, []result{{name: "an attack", memory: mostMemory + 1, failed: 1, calls: 2}})
	if n := strings.Count(table, "over the bound"); n != 2 {
		t.Errorf("%d bounds are said to be broken in %s", n, table)
	}
	if err := write(file, table); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != table {
		t.Errorf("a new file: %s, %v", text, err)
	}
	if err := write(file, table); err == nil {
		t.Error("a document without a place for the table was written over")
	}
	for range 2 { // each run replaces the one before
		before := "a\n" + begins + ends + "b\n"
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), begins) {
			before = string(text)
		}
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := write(file, table); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "a\n"+begins+"\n"+table+"\n"+ends+"b\n" {
			t.Errorf("got %s, %v", text, err)
		}
	}
}
