//go:build unix

package segment_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// A hole takes no room on a disk, and hours to read. What stands behind the last record is declared.
func TestAStartOverAHugeHoleBehindTheLastRecordGoesOn(t *testing.T) {
	n := newNode(t)
	names := n.segments(t)
	last := filepath.Join(n.dir, names[len(names)-1])
	if err := os.Truncate(last, 1<<40); err != nil {
		t.Skipf("no such file can be made here: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.start(t) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it reads the hole")
	}
	if !slices.ContainsFunc(n.faults, func(s string) bool { return strings.Contains(s, "without their hash") }) {
		t.Errorf("the start said %q", n.faults)
	}
	keys, err := evidence.ParseKeys(n.key.LogKey())
	if err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: n.dir, Keys: keys})
	if err != nil || r.Verdict != evidence.VerdictIncomplete || r.IgnoredBytes < 1<<39 {
		t.Errorf("%+v, fault %v, %v", r, r.Fault, err)
	}
}

// What is not the log that was signed is refused in the time of a start, and what stands behind its end is left out.
func TestAStartOverAHugeHoleBehindAChangedEndFails(t *testing.T) {
	for name, change := range map[string]func(text []byte) []byte{
		"a record was cut off": func(text []byte) []byte { return text[:len(text)-100] },
		"a record stands twice": func(text []byte) []byte {
			line := text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:]
			return append(bytes.Clone(text), line...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			names := n.segments(t)
			last := filepath.Join(n.dir, names[len(names)-1])
			text, err := os.ReadFile(last)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(last, change(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(last, 1<<40); err != nil {
				t.Skipf("no such file can be made here: %v", err)
			}
			ended := make(chan error, 1)
			go func() { ended <- n.start(t) }()
			select {
			case err := <-ended:
				if isBehind := name == "a record stands twice"; (err == nil) != isBehind {
					t.Errorf("the start says %v", err)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("it reads the hole")
			}
		})
	}
}
