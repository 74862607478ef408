package evidence_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// killed is what the process leaves in a directory that is killed while it keeps a log, by the names of the files.
type killed struct {
	files  map[string][]byte
	newest string
	before string // the segment before the newest
	key    *evidence.Key
	// isAside says that what was added is left out by the next start, and is a fault to a reader.
	isAside bool
}

// killedLog has two segments. Of the newest, a signed checkpoint covers so many records; 0 signs nothing at all.
func killedLog(t *testing.T, covered, records int) killed {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	var kept *evidence.Log
	w, err := segment.Open(t.Context(), dir, segment.Options{SegmentBytes: 16_384, NoSync: true, OnFault: func(err error) { t.Error(err) }, Evidence: func(*segment.Found) (segment.Evidence, error) {
		kept, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
		return kept, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	k := killed{key: key}
	read := func() (segments []string) {
		k.files = map[string][]byte{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == "lock" {
				continue
			}
			if k.files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
			if _, ok := segment.ParseName(e.Name()); ok && len(k.files[e.Name()]) > 0 {
				segments = append(segments, e.Name())
			}
		}
		return segments
	}
	inNewest := 0
	var signed []byte // the checkpoints of that time: another one may be made at any moment
	for inNewest < records {
		if inNewest++; inNewest == covered {
			if err := kept.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			read()
			signed = k.files[evidence.CheckpointFile]
		}
		if _, err := w.Append(t.Context(), &audit.Event{
			Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: "x", Outcome: &audit.Outcome{Result: audit.ResultIdle, Error: strings.Repeat("x", 250)},
		}); err != nil {
			t.Fatal(err)
		}
		if segments := read(); len(segments) == 2 && k.before == "" {
			k.before, k.newest, inNewest = segments[0], segments[1], 0
			signed = k.files[evidence.CheckpointFile]
		} else if k.before == "" {
			inNewest = 0
		}
	}
	read()
	if k.files[evidence.CheckpointFile] = signed; covered == 0 {
		delete(k.files, evidence.CheckpointFile)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// ends continues a damaged log and says where: the number of its last record, and what the writer says was wrong. refused is the evidence's word.
func (k killed) ends(t *testing.T, what string, files map[string][]byte, withEvidence bool) (last uint64, fault string, refused error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	head, err := evidence.LastSigned(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kept *evidence.Log
	o := segment.Options{NoSync: true, Covered: head.Size, Evidence: func(f *segment.Found) (segment.Evidence, error) {
		last = f.Last
		kept, refused = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{k.key}})
		if refused == nil {
			if size, _, _ := kept.Root(); size != last {
				t.Errorf("%s: the writer ends the log with record %d, the evidence with %d", what, last, size)
			}
		}
		return kept, refused
	}}
	if !withEvidence {
		o.Evidence = nil
	}
	w, err := segment.Open(t.Context(), dir, o)
	if refused != nil || err != nil {
		if err == nil || refused == nil {
			t.Errorf("%s: the evidence says %v, the writer %v", what, refused, err)
		}
		return last, "", refused
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if kept != nil {
		keys, err := evidence.ParseKeys(k.key.LogKey())
		if err != nil {
			t.Fatal(err)
		}
		if err := kept.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys}); err != nil || !k.isAside && (r.Verdict != evidence.VerdictIncomplete || r.LastSeq != r.OwnCovered) || k.isAside && r.Verdict == evidence.VerdictOK {
			t.Errorf("%s: the log that was continued: %v, %v %v", what, err, r.Verdict, r.Fault)
		}
	}
	return last, openingFault(t, dir), nil
}

// openingFault is what the newest segment says of the one before.
func openingFault(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var newest *audit.Event
	for _, e := range entries {
		if _, ok := segment.ParseName(e.Name()); !ok {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		if event, err := audit.Parse(line); err == nil && event.Log != nil && (newest == nil || event.Time.After(newest.Time)) {
			newest = &event
		}
	}
	return newest.Log.Fault
}

// agree damages a copy of the log and asks both where it ends.
func (k killed) agree(t *testing.T, what string, damage func(files map[string][]byte)) (last uint64, isCrash bool) {
	t.Helper()
	files := maps.Clone(k.files)
	damage(files)
	last, _, refused := k.ends(t, what, files, true)
	if refused == nil {
		return last, true
	}
	if _, fault, _ := k.ends(t, what, files, false); fault == "" {
		t.Errorf("%s: the evidence says %v, and to the writer it is the work of a crash", what, refused)
	}
	return last, false
}

func TestWriterAndEvidenceEndADamagedLogAtTheSamePlace(t *testing.T) {
	for name, c := range map[string]struct{ covered, records int }{
		"nothing signed":             {0, 6},
		"signed within the segment":  {4, 6},
		"signed to the last but one": {6, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time goes into waiting for the disk
			k := killedLog(t, c.covered, c.records)
			text := k.files[k.newest]
			set := func(b []byte) func(map[string][]byte) {
				return func(files map[string][]byte) { files[k.newest] = b }
			}
			tries, crashes, faults := -1, 0, 0
			try := func(what string, damage func(map[string][]byte)) uint64 {
				if tries++; !evidence.IsTried(tries, 1) { // each writes the log anew and starts it
					return 0
				}
				last, isCrash := k.agree(t, what, damage)
				if isCrash {
					crashes++
				} else {
					faults++
				}
				return last
			}
			whole := try("as it is", func(map[string][]byte) {})
			var starts []int // of the lines
			for at := 0; at < len(text); at += bytes.IndexByte(text[at:], '\n') + 1 {
				starts = append(starts, at)
			}
			for length := starts[len(starts)-3]; length < len(text); length++ {
				if !evidence.IsTried(length, 41) && !slices.Contains(starts, length) && text[length-1] != '}' { // all of them take a minute
					continue
				}
				if last := try(fmt.Sprintf("cut to %d of %d bytes", length, len(text)), set(text[:length])); last > whole {
					t.Errorf("cut to %d bytes it has %d records, and whole %d", length, last, whole)
				}
			}
			for at := 0; at < len(text); at += 512 {
				if !evidence.IsTried(at/512, 5) {
					continue
				}
				for _, end := range []int{at + 512, at + 4096, len(text)} {
					holed := bytes.Clone(text)
					clear(holed[at:min(end, len(text))])
					try(fmt.Sprintf("zeros from %d to %d", at, end), set(holed))
				}
			}
			random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
			noise := func(n int) []byte {
				b := make([]byte, n)
				for i := range b {
					b[i] = byte(random.Uint32())
				}
				return b
			}
			for _, at := range append(slices.Clone(starts), len(text), len(text)-1, len(text)-300) {
				for _, rest := range []string{"\n", "x", "x\n", "{}\n", "\x00", "\x00\n", string(noise(700)), string(noise(700)) + "\n", string(noise(9000)) + "\n", strings.Repeat("x", 20_000), strings.Repeat("\x00", 20_000) + "\n", string(text[:starts[1]])} {
					try(fmt.Sprintf("%d bytes, and behind them %.20q", at, rest), set(append(bytes.Clone(text[:at]), rest...)))
				}
			}
			for _, size := range []int{segment.MaxLost - 100, segment.MaxLost + 100} {
				try(fmt.Sprintf("%d bytes of garbage, and a line", size), set(append(append(bytes.Clone(text), bytes.Repeat([]byte{0}, size)...), "\nx\n"...)))
				try(fmt.Sprintf("%d bytes of garbage", size), set(append(bytes.Clone(text), bytes.Repeat([]byte{0}, size)...)))
			}
			swapped := slices.Concat(text[:starts[2]], text[starts[3]:starts[4]], text[starts[2]:starts[3]], text[starts[4]:])
			try("two records swapped", set(swapped))
			try("a record twice", set(append(bytes.Clone(text), text[starts[len(starts)-1]:]...)))
			try("a record missing", set(slices.Concat(text[:starts[1]], text[starts[2]:])))
			for i, at := range starts { // within a line: JSON that is none, and another text
				for _, change := range []string{"\x00", "}", "Y"} {
					changed := bytes.Clone(text)
					copy(changed[at+230:], change)
					try(fmt.Sprintf("line %d with %q in it", i+1, change), set(changed))
				}
			}
			void := segment.Name(whole + 1)
			for _, first := range []string{"", "{", "\x00\n", "x\n", strings.Repeat("\x00", 4096) + "\n" + string(text[:starts[1]]), strings.Repeat("x", 12_000) + "\n", strings.Repeat("x", 20_000)} {
				try(fmt.Sprintf("a new segment with %.10q", first), func(files map[string][]byte) { files[void] = []byte(first) })
				try(fmt.Sprintf("two new segments with %.10q", first), func(files map[string][]byte) {
					files[void], files[segment.Name(whole+1)] = []byte(first), []byte(first)
				})
				try(fmt.Sprintf("a cut one, and a new segment with %.10q", first), func(files map[string][]byte) {
					files[k.newest], files[void] = text[:len(text)-50], []byte(first)
				})
				try(fmt.Sprintf("a new segment with %.10q in place of the last", first), set([]byte(first)))
			}
			t.Logf("%d were the work of a crash, %d were refused", crashes, faults)
		})
	}
}

// An account that can write to the directory can add a segment behind an end that was not signed. Whatever its first record says, writer and evidence take over
// the same records: those of a segment whose opening fits, to the letter, and none of any other.
func TestWriterAndEvidenceReadAnAddedOpeningAlike(t *testing.T) {
	t.Parallel()
	k := killedLog(t, 4, 6)
	whole, _, refused := k.ends(t, "as it is", k.files, true)
	if refused != nil {
		t.Fatal(refused)
	}
	text := k.files[k.newest]
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	leaf := segment.Leaf(lines[len(lines)-1])
	added := segment.Name(whole + 1)
	opening, err := audit.Encode(nil, audit.Event{
		V: audit.Version, Seq: whole + 1, Type: audit.TypeLog, Stage: audit.StageLogOpen, Time: time.Now(), Session: "forged", ID: "y", Prev: base64.StdEncoding.EncodeToString(leaf[:]),
		Log: &audit.Log{PreviousSegment: k.newest, PreviousBytes: int64(len(text)), PreviousSeq: whole, Segment: added},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range [][2]string{{``, ``}, {`"log":{`, `"log":{"cause":"size",`}, {`"log":{`, `"log":{"lost":7,"void":null,`}, {`"segment":"` + added + `"`, `"segment":""`}, {`"segment":"` + added + `"`, `"segment":null`}, {`"log":{`, `"log" : { `}} {
		files := maps.Clone(k.files)
		files[added] = bytes.Replace(opening, []byte(log[0]), []byte(log[1]), 1)
		if last, _, refused := k.ends(t, log[1], files, true); refused != nil || last != whole+1 {
			t.Errorf("%s: the log goes on from record %d of %d: %v", log[1], last, whole+1, refused)
		}
	}
	k.isAside = true
	var unfit [][2]string
	for _, fields := range []string{
		`"unsigned":-5`, `"unsigned":1e30`, `"lost":1.5`, `"orphaned":"x"`, `"orphaned":-1`, `"void":"x"`, `"void":[5]`, `"void_held":{}`, `"fault":5`, `"previous_torn_hash":7`, `"torn_bytes":"1"`,
		`"torn_bytes":-5`, `"torn_bytes":5`, `"torn_bytes":1e30`, `"oldest_open":1e30`, `"pruned":5`, `"pruned":{"segments":5,"last_seq":"x"}`, `"unknown":1`, `"Fault":5`, `"previous_bytes":"5"`, `"previous_segment":7`,
		`"previous_seq":null`, `"cause":"size","cause":"start"`, `"SEGMENT":"zz"`, `"segment":"zz"`, `"Previous_Segment":"zz"`, `"PREVIOUS_BYTES":1`,
	} {
		unfit = append(unfit, [2]string{`"log":{`, `"log":{` + fields + `,`})
	}
	const other = "audit-00000000000000000001-00000000-0000-4000-8000-000000000000.jsonl"
	of := `"segment":"` + added + `"`
	for _, segment := range []string{`"segment":"` + other + `"`, `"segment":"../x"`, `"segment":"` + added + `.gz"`, `"segment":5`, `"segment":["x"]`, of + `,"segment":"` + other + `"`, of + `,` + of, of + `,"SEGMENT":"zz"`, `"SEGMENT":"` + added + `"`, `"s\u0065gment":"zz"`} {
		unfit = append(unfit, [2]string{of, segment})
	}
	unfit = append(unfit, [][2]string{
		{`"log":{`, `"log":{},"log":{`}, {`"log":{`, `"Log":{"segment":"zz"},"log":{`}, {`"log":{`, `"x":1,"log":{`}, {`"log":{`, `"outcome":{"result":"x"},"log":{`}, {`"prev":"`, `"prev":"x","prev":"`}, {`"previous_bytes":`, `"previous_bytes":-`},
		{`"type":"log"`, `"type":5`}, {`"session":"forged",`, ``}, {`"id":"y"`, `"id":["y"]`}, {`"time":"`, `"time":"x`}, {`"stage":"LogOpen"`, `"stage":"LogOpen","x":1`}, {`"v":1`, `"v":2`}, {`"stage":"LogOpen"`, `"stage":"LogPrune"`},
		{`"type":"log"`, `"type":"request"`}, {`"seq":`, `"seq":1`},
	}...)
	for _, change := range unfit {
		files := maps.Clone(k.files)
		if files[added] = bytes.Replace(opening, []byte(change[0]), []byte(change[1]), 1); bytes.Equal(files[added], opening) {
			t.Fatalf("%s is not in %s", change[0], opening)
		}
		if last, _, refused := k.ends(t, change[1], files, true); refused != nil || last != whole {
			t.Errorf("%s: the log goes on from record %d of %d: %v", change[1], last, whole, refused)
		}
	}
}
