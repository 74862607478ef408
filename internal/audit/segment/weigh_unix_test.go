//go:build unix

package segment_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// The length of a file can be made up, and must not have the log remove its oldest records.
func TestAHoleCostsTheLogNoSegment(t *testing.T) {
	const keep = 8 << 20 // of much less that is there
	n := newNode(t)
	for range 3 {
		if err := n.start(t); err != nil {
			t.Fatal(err)
		}
	}
	names := n.segments(t)
	last := filepath.Join(n.dir, names[len(names)-1])
	if err := os.Truncate(last, 1<<40); err != nil {
		t.Skipf("no such file can be made here: %v", err)
	}
	signed, err := evidence.LastSigned(n.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var tree *evidence.Log
	w, err := segment.Open(t.Context(), n.dir, segment.Options{
		NoSync: true, Covered: signed.Size, SegmentBytes: 2 * audit.MaxRecord, KeepBytes: keep, Admitted: 1,
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			tree, err = evidence.Open(context.Background(), evidence.Options{Dir: n.dir, Keys: []*evidence.Key{n.key}})
			return tree, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	stats := w.Stats()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tree.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if after := n.segments(t); stats.Pruned > 0 || stats.Bytes > keep || !slices.Equal(after[:len(names)], names) {
		t.Errorf("%d segments were removed, %d bytes are said to be there; before %q, after %q", stats.Pruned, stats.Bytes, names, after)
	}
}
