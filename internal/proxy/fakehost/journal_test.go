package fakehost

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func TestEveryOperationIsInTheJournalBeforeItIsDoneAndAfterwards(t *testing.T) {
	var journal bytes.Buffer
	h := New(Options{Journal: &journal})
	if _, err := h.DiskSize(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := h.StartService(t.Context(), "Nothing"); err == nil {
		t.Fatal("a service that is not there was started")
	}
	lines := strings.Split(strings.TrimSpace(journal.String()), "\n")
	want := []string{
		`{"op":"DiskSize","args":["1"]}`, `{"op":"DiskSize","args":["1"],"ended":true}`,
		`{"op":"StartService","args":["Nothing"]}`, `{"op":"StartService","args":["Nothing"],"ended":true,"err":`,
	}
	if len(lines) != len(want) {
		t.Fatalf("%q", lines)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want[i])
		}
	}
}

func TestWithoutItsLineNothingIsDone(t *testing.T) {
	h := New(Options{Journal: brokenJournal{}})
	if err := h.StartService(t.Context(), "MSiSCSI"); err == nil {
		t.Error("no error")
	}
	if n := len(h.Ledger()); n != 0 {
		t.Errorf("%d operations were carried out", n)
	}
}

func TestTheJournalHoldsNoSecret(t *testing.T) {
	var journal bytes.Buffer
	h := New(Options{Journal: &journal})
	if err := h.SetMutualCHAPSecret(t.Context(), handler.NewSecret("hunter2hunter2")); err != nil {
		t.Fatal(err)
	}
	if text := journal.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "SetMutualCHAPSecret") {
		t.Error(text)
	}
}

type brokenJournal struct{}

func (brokenJournal) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
