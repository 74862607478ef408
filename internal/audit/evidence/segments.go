package evidence

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Segment is one file of records.
type Segment struct {
	Path  string
	First uint64 // number of its first record, from its name
}

// parseSegment reads the name of a segment. What its writer does not name so, no reader takes for a part of the log.
func parseSegment(path string) (Segment, bool) {
	first, ok := segment.ParseName(filepath.Base(path))
	return Segment{path, first}, ok && first <= MaxSize
}

// listSegments returns the segments in a directory by their first numbers. Other files are left alone.
func listSegments(dir string) ([]Segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []Segment
	for _, e := range entries {
		if s, ok := parseSegment(filepath.Join(dir, e.Name())); ok && !e.IsDir() {
			out = append(out, s)
		}
	}
	sortSegments(out)
	return out, nil
}

func sortSegments(s []Segment) {
	slices.SortFunc(s, func(a, b Segment) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Path, b.Path)) })
}
