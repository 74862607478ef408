package query_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// kept is a log of the real writer and what was held elsewhere.
type kept struct {
	files   map[string][]byte
	names   []string // of the segments, in order
	lines   []string // of all records
	keys    evidence.Keys
	key     *evidence.Key
	outside []byte
}

// keep writes a log of several segments, once for all tests.
var keep = sync.OnceValues(func() (k *kept, err error) {
	base, err := os.MkdirTemp("", "query-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(base) //nolint:errcheck // a test's
	dir := filepath.Join(base, "log")
	k = &kept{files: map[string][]byte{}}
	if k.key, err = evidence.NewKey(evidence.Origin("node-1")); err != nil {
		return nil, err
	}
	if k.keys, err = evidence.ParseKeys(k.key.LogKey()); err != nil {
		return nil, err
	}
	var tree *evidence.Log
	var seconds atomic.Int64 // no two checkpoints are signed at the same time
	now := func() time.Time { return time.Unix(1_790_000_000+seconds.Add(1), 0) }
	w, err := segment.Open(context.Background(), dir, segment.Options{SegmentBytes: 2 * audit.MaxRecord, NoSync: true, Evidence: func(*segment.Found) (segment.Evidence, error) {
		tree, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{k.key}, Now: now})
		return tree, err
	}})
	if err != nil {
		return nil, err
	}
	for i := range 12 {
		e := &audit.Event{
			Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: fmt.Sprintf("R%d", i), What: &audit.What{Method: strings.Repeat("M", 6000)},
			Decision: &audit.Decision{Effect: audit.EffectDeny, Reason: "no rule allows it"}, Outcome: &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied"},
		}
		if _, err := w.Append(context.Background(), e); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), tree.Checkpoint(context.Background()), tree.Close(context.Background())); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if k.files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
		if _, ok := segment.ParseName(e.Name()); ok {
			k.names = append(k.names, e.Name())
			k.lines = append(k.lines, strings.Split(strings.TrimSuffix(string(k.files[e.Name()]), "\n"), "\n")...)
		}
	}
	own := k.files[evidence.CheckpointFile]
	at := bytes.LastIndex(own[:len(own)-1], []byte("\n\n"+evidence.OriginPrefix)) + 2
	k.outside, k.files[evidence.CheckpointFile] = own[at:], own[:at] // the last one was held elsewhere, and is gone here
	return k, nil
})

func keptLog(t testing.TB) *kept {
	t.Helper()
	k, err := keep()
	if err != nil {
		t.Fatal(err)
	}
	if len(k.names) < 3 {
		t.Fatalf("only %d segments", len(k.names))
	}
	return k
}

// put makes a directory of files.
func put(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (k *kept) options(t testing.TB) evidence.VerifyOptions {
	t.Helper()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, k.outside, 0o600); err != nil {
		t.Fatal(err)
	}
	return evidence.VerifyOptions{Keys: k.keys, Outside: []string{outside}}
}

// with returns the files of the log and more.
func (k *kept) with(more map[string][]byte) map[string][]byte {
	files := maps.Clone(k.files)
	maps.Copy(files, more)
	return files
}

// shown are the records of a source as they stand in the log; lines that are none are "bad".
func shown(t testing.TB, s *query.Source) (lines []string) {
	t.Helper()
	for r, err := range s.Records() {
		switch {
		case err == nil:
			lines = append(lines, string(r.Raw))
		case errors.As(err, new(*query.BadLine)):
			lines = append(lines, "bad")
		default:
			t.Fatal(err)
		}
	}
	return lines
}

// opening is the first record of a segment that somebody plants.
func opening(seq uint64, log string) []byte {
	return fmt.Appendf(nil, `{"v":1,"seq":%d,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{%s},"prev":"%s"}`+"\n", seq, log, strings.Repeat("A", 43)+"=")
}

func (k *kept) last() string { return k.names[len(k.names)-1] }

// number is the one in the name of a segment, first is what it says.
func number(name string) string { return name[6:26] }

func first(name string) uint64 {
	n, _ := segment.ParseName(name)
	return n
}

func planted(first string) string {
	return "audit-" + first + "-0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl"
}

func quoted(names []string) string { return `"void":["` + strings.Join(names, `","`) + `"]` }

// Of what somebody puts beside the segments of a log nothing is shown as verified, and nothing that is genuine disappears.
func TestAPlantedFileReplacesNothing(t *testing.T) {
	k := keptLog(t)
	forged := func(seq uint64, void []string) []byte { return opening(seq, quoted(void)) }
	for name, more := range map[string]map[string][]byte{
		"a number above all numbers":            {planted("09999999999999999999"): forged(9999999999999999999, k.names)},
		"the largest number":                    {planted("04611686018427387904"): forged(1<<62, k.names)},
		"a number far ahead":                    {planted("00000000000000999999"): forged(999999, k.names)},
		"the number of the first":               {planted("00000000000000000001"): forged(1, k.names)},
		"the number of the last":                {planted(number(k.last())): forged(first(k.last()), k.names)},
		"a packed one":                          {planted("00000000000000000001") + ".gz": packed(t, forged(1, k.names))},
		"a packed copy of the last":             {k.last() + ".gz": packed(t, forged(1, k.names))},
		"two that name each other":              {planted("00000000000000000001"): forged(1, append(k.names, "audit-00000000000000000001-1b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl")), "audit-00000000000000000001-1b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl": forged(1, k.names)},
		"a name in capitals":                    {"AUDIT-1.JSONL": forged(1, k.names)},
		"a name that other programs would take": {"audit-1.jsonl": []byte(k.lines[3] + "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := put(t, k.with(more))
			o := k.options(t)
			o.Dir = dir
			if r, err := evidence.Verify(t.Context(), o); err != nil || r.Verdict != evidence.VerdictTampered {
				t.Errorf("verify: %s %v", r.Verdict, err)
			}
			s, err := query.OpenVerified(t.Context(), []string{dir}, nil, k.options(t))
			if err != nil {
				t.Fatal(err)
			}
			lines := shown(t, s)
			if standing := s.Logs()[0].Standing(); standing.Verified != 0 || !standing.Changed {
				t.Errorf("its records stand as %+v", standing)
			}
			all := map[string][]string{"verified": lines}
			without, err := query.Open([]string{dir}, nil)
			switch isTwice := name == "a packed copy of the last"; { // which one is it?
			case isTwice && err == nil:
				t.Error("without keys, one of the two is shown")
			case !isTwice && err != nil:
				t.Fatal(err)
			case !isTwice:
				all["not verified"] = shown(t, without)
			}
			for how, lines := range all {
				if how == "not verified" && name == "the number of the last" { // as after a write that failed; the reader is told
					if unread := without.Logs()[0].Unread; len(unread) != 1 || filepath.Base(unread[0].Path) != k.last() {
						t.Errorf("%s: not read are %v", how, unread)
					}
					continue
				}
				for _, line := range k.lines {
					if !slices.Contains(lines, line) {
						t.Errorf("%s: a genuine record is not shown: %.40s", how, line)
						break
					}
				}
			}
		})
	}
}

func packed(t testing.TB, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPackedSegmentsAreReadAndVerified(t *testing.T) {
	k := keptLog(t)
	for name, pack := range map[string]func(i int) bool{
		"all": func(int) bool { return true }, "the first": func(i int) bool { return i == 0 }, "the last": func(i int) bool { return i == len(k.names)-1 },
	} {
		files := maps.Clone(k.files)
		for i, name := range k.names {
			if pack(i) {
				files[name+".gz"] = packed(t, files[name])
				delete(files, name)
			}
		}
		dir := put(t, files)
		s, err := query.OpenVerified(t.Context(), []string{dir}, nil, k.options(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(k.lines, shown(t, s)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if l := s.Logs()[0]; l.Report.Verdict != evidence.VerdictOK || l.Standing().Verified != uint64(len(k.lines)) {
			t.Errorf("%s: %s %v, %+v", name, l.Report.Verdict, l.Report.Incomplete, l.Standing())
		}
		unverified, err := query.Open([]string{dir}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(k.lines, shown(t, unverified)); diff != "" {
			t.Errorf("%s, not verified: %s", name, diff)
		}
	}
	broken := packed(t, k.files[k.names[0]])
	for name, text := range map[string][]byte{"cut": broken[:len(broken)-9], "another end": append(bytes.Clone(broken), "more"...), "not packed": k.files[k.names[0]]} {
		files := k.with(map[string][]byte{k.names[0] + ".gz": text})
		delete(files, k.names[0])
		o := k.options(t)
		o.Dir = put(t, files)
		if r, err := evidence.Verify(t.Context(), o); err != nil || r.Verdict != evidence.VerdictTampered {
			t.Errorf("%s: %s %v", name, r.Verdict, err)
		}
	}
}

// isNamed says whether a report says something of a file of the log's directory, or has read it.
func isNamed(r evidence.Report, name string) bool {
	is := func(text string) bool { return strings.Contains(text, name) }
	return r.Fault != nil || slices.ContainsFunc(r.Incomplete, is) || slices.ContainsFunc(r.Unused, is) || slices.ContainsFunc(r.Void, is) ||
		slices.ContainsFunc(r.Parts, func(p evidence.Part) bool { return filepath.Base(p.Path) == name })
}

// FuzzWhatIsVerifiedIsWhatIsShown plants a file of any name and content beside a log. If the verification finds no fault, every reader shows
// the records that it covers, and no others.
func FuzzWhatIsVerifiedIsWhatIsShown(f *testing.F) {
	k := keptLog(f)
	for _, name := range []string{
		planted("09999999999999999999"), planted("00000000000000000001"), planted("00000000000000000002"), planted(number(k.last())), planted("00000000000000999999"),
		k.names[1], k.last(), k.names[0] + ".gz", "audit-1.jsonl", "start", "checkpoints", ".start-1", ".checkpoints-x", "notes.txt", "lock", "AUDIT-x", planted("00000000000000000014") + ".gz",
	} {
		digits, _, _ := strings.Cut(strings.TrimPrefix(name, "audit-"), "-")
		seq := uint64(1)
		_, _ = fmt.Sscanf(digits, "%d", &seq)
		for i, content := range [][]byte{
			opening(seq, quoted(k.names)), opening(seq, fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,%s`, k.last(), len(k.files[k.last()]), quoted(k.names[:1]))),
			nil, []byte("\x00\n" + k.lines[1] + "\n"), []byte(k.lines[2] + "\n"), k.files[k.names[1]], packed(f, opening(seq, quoted(k.names))), []byte("x"),
		} {
			if testing.Short() && i > 0 {
				continue // of another system, names are of interest
			}
			f.Add(name, content, false)
			f.Add(name, content, true)
		}
	}
	f.Fuzz(func(t *testing.T, name string, content []byte, isAppended bool) {
		if name != filepath.Base(name) || name == "." || name == ".." || strings.ContainsAny(name, "\\\x00:") || len(name) > 200 {
			t.Skip()
		}
		files := k.with(map[string][]byte{name: content})
		if isAppended {
			files[name] = append(bytes.Clone(k.files[name]), content...)
		}
		dir := put(t, files)
		s, err := query.OpenVerified(t.Context(), []string{dir}, nil, k.options(t))
		if err != nil {
			return // nothing is shown
		}
		lines, l := shown(t, s), s.Logs()[0]
		standing := l.Standing()
		isUnusedLock := name == "lock" && len(content) == 0
		if !isAppended && k.files[name] == nil && !isNamed(*l.Report, name) && !isUnusedLock {
			t.Fatalf("nothing is said of %q: %+v", name, l.Report)
		}
		if l.Report.Fault != nil || standing.Changed {
			if standing.Verified != 0 || l.Report.Fault == nil {
				t.Fatalf("a log with the fault %v stands as %+v", l.Report.Fault, standing)
			}
			return
		}
		without, err := query.Open([]string{dir}, nil)
		if err != nil {
			t.Fatalf("verified, and cannot be read: %v", err)
		}
		records := func(lines []string) []string {
			return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l == "bad" })
		}
		if diff := cmp.Diff(records(lines), records(shown(t, without))); diff != "" {
			t.Fatalf("readers differ: %s", diff)
		}
		if got := records(lines); uint64(len(got)) > l.Report.Records {
			t.Fatalf("%d records are shown, and %d were verified", len(got), l.Report.Records)
		}
		for i, line := range lines[:min(standing.Verified, uint64(len(lines)))] {
			if line != k.lines[i] {
				t.Fatalf("record %d is another one: %q", i+1, line)
			}
		}
		if standing.Verified < uint64(len(k.lines)) {
			t.Fatalf("only %d records are verified, and nothing speaks against the log: %v", standing.Verified, l.Report.Incomplete)
		}
	})
}
