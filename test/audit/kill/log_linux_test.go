package kill

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// reader reads the segments of a log once each, by what the first record of each says of the one before. It shares no code with the
// writer's recovery.
type reader struct {
	dir  string
	read map[string]bool
	last uint64 // number of the last record that was read
}

// closed returns the records of the segments that will not change any more, which is all but the newest, and those of the newest.
func (r *reader) closed(t *testing.T) (old, newest []audit.Event) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.dir, "audit-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names) // by the number of the first record
	type segment struct {
		name, text string
		opening    audit.Event
	}
	var all []segment
	void := map[string]bool{}
	for _, name := range names {
		if r.read[name] {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		line, _, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			r.read[name] = true // killed before its first record
			continue
		}
		opening, err := audit.Parse(line)
		if err != nil || opening.Log == nil {
			t.Fatalf("%s begins with %q: %v", name, line, err)
		}
		for _, v := range opening.Log.Void {
			void[filepath.Join(r.dir, v)] = true
		}
		all = append(all, segment{name, string(text), opening})
	}
	all = slices.DeleteFunc(all, func(s segment) bool { return void[s.name] })
	for i, s := range all {
		counts := int64(len(s.text))
		if i+1 < len(all) {
			next := all[i+1].opening.Log
			if next.PreviousSegment != filepath.Base(s.name) {
				t.Fatalf("%s follows %s, and not %s", filepath.Base(all[i+1].name), next.PreviousSegment, filepath.Base(s.name))
			}
			counts = next.PreviousBytes
			r.read[s.name] = true
		}
		events := r.records(t, s.name, s.text[:counts], i+1 < len(all))
		if i+1 < len(all) {
			old = append(old, events...)
		} else {
			newest = events
		}
	}
	return old, newest
}

func (r *reader) records(t *testing.T, name, text string, final bool) (events []audit.Event) {
	t.Helper()
	last := r.last
	for line := range bytes.Lines([]byte(text)) {
		if !bytes.HasSuffix(line, []byte("\n")) && !final {
			break // it is being written
		}
		e, err := audit.Parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if last++; e.Seq != last {
			t.Fatalf("%s: record %d where %d belongs", name, e.Seq, last)
		}
		events = append(events, e)
	}
	if final {
		r.last = last
	}
	return events
}

// path is what a request is about.
func path(e audit.Event) string {
	if e.What == nil || len(e.What.Targets) != 1 {
		return fmt.Sprintf("nothing that is known, in record %d", e.Seq)
	}
	return e.What.Targets[0].Value
}
