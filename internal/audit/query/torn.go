package query

import (
	"math"
	"os"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// ofTheLog is how many bytes of a segment are of the log. What stands behind them was cut short, or was never acknowledged and is
// written again in the next segment, whose first record declares how much of it there was; a failure of power may have left less. If
// more stands there, all is read: nothing is left out that the log does not account for.
func ofTheLog(f *os.File, next string) int64 {
	info, err := f.Stat()
	_, ok := segment.ParseName(filepath.Base(f.Name()))
	if err != nil || next == "" || next == "-" || filepath.Dir(f.Name()) != filepath.Dir(next) || !ok {
		return math.MaxInt64
	}
	open := opening(next)
	if open == nil || open.PreviousSegment != filepath.Base(f.Name()) || open.PreviousBytes < 0 {
		return math.MaxInt64
	}
	if behind := info.Size() - open.PreviousBytes; behind < 0 || behind > int64(open.TornBytes) {
		return math.MaxInt64
	}
	return open.PreviousBytes
}

// withoutVoid leaves out the segments in which no record counts, as another one of their directory declares.
func withoutVoid(files []string) []string {
	void := map[string]bool{}
	for _, name := range files {
		addVoid(void, name)
	}
	kept := files[:0:0]
	for _, name := range files {
		if !void[name] {
			kept = append(kept, name)
		}
	}
	return kept
}

// addVoid notes what a segment declares void: files that its writer found, or could not remove.
func addVoid(void map[string]bool, name string) {
	base := filepath.Base(name)
	if _, ok := segment.ParseName(base); !ok {
		return
	}
	open := opening(name)
	if open == nil {
		return
	}
	for _, v := range open.Void {
		if _, ok := segment.ParseName(v); ok && v != base {
			void[filepath.Join(filepath.Dir(name), v)] = true
		}
	}
}

// opening is what the first record of a segment says of the log, nil if it says nothing.
func opening(name string) *audit.Log {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil // what can be read once is left for its records
	}
	f, err := os.Open(name) //nolint:gosec // a segment that the user names, or of the directory
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	for record, err := range Read(name, f) {
		if err == nil && record.Stage == audit.StageLogOpen {
			return record.Log
		}
		return nil
	}
	return nil
}
