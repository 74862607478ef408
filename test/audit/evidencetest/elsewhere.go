// Package evidencetest has checkpoints of logs held elsewhere, for tests.
package evidencetest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// Elsewhere signs the closed log in dir once more and returns the file of that checkpoint, which does not lie in dir. A copy of one that does
// would not count as held elsewhere.
func Elsewhere(tb testing.TB, dir string, key *evidence.Key) (file string) {
	tb.Helper()
	own := filepath.Join(dir, evidence.CheckpointFile)
	before, err := os.ReadFile(own)
	if err != nil {
		tb.Fatal(err)
	}
	later := time.Now().Add(time.Hour) // signed at another time, it is another one
	log, err := evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}, Now: func() time.Time { return later }})
	if err != nil {
		tb.Fatal(err)
	}
	if err := log.Close(context.Background()); err != nil {
		tb.Fatal(err)
	}
	after, err := os.ReadFile(own)
	if err != nil {
		tb.Fatal(err)
	}
	var newest []byte
	for n, err := range evidence.Notes(bytes.NewReader(after)) {
		if err != nil {
			tb.Fatal(err)
		}
		newest = n.Raw
	}
	file = filepath.Join(tb.TempDir(), "elsewhere")
	if err := os.WriteFile(file, newest, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(own, before, 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}
