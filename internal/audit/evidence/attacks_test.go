package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// unsealed is a log whose last segment goes on behind the last checkpoint, with the checkpoint held elsewhere.
func unsealed(t *testing.T) (m *madeLog, outside string) {
	t.Helper()
	m = newLog(t, Options{})
	m.begin(0)
	m.records(4)
	m.end()
	m.checkpoint()
	m.begin(0)
	m.records(3)
	m.checkpoint()
	outside = m.outside()
	return m, outside
}

// last is the file of the segment that is open, and its lines.
func (m *madeLog) last(t *testing.T) (file string, lines [][]byte) {
	t.Helper()
	text, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	return m.file, slices.Collect(bytes.Lines(text))
}

// CVE-2023-31437: an attacker can modify a sealed journal so that some events are not shown, and verification passes.
// https://nvd.nist.gov/vuln/detail/CVE-2023-31437
func TestSystemdCVE2023_31437EventsAreHiddenFromTheViewAndVerificationPasses(t *testing.T) {
	m, outside := unsealed(t)
	file, lines := m.last(t)
	for name, change := range map[string]func() []byte{
		"the last sealed record is cut off": func() []byte { return bytes.Join(lines[:len(lines)-1], nil) },
		"a sealed record is blanked": func() []byte {
			return slices.Concat(lines[0], bytes.Repeat([]byte(" "), len(lines[1])-1), []byte("\n"), lines[2], lines[3])
		},
		"a NUL hides a sealed record from line to line":     func() []byte { return slices.Concat(lines[0], []byte("\x00\n"), lines[1], lines[2], lines[3]) },
		"a sealed record is declared torn by a new opening": func() []byte { return bytes.Join(lines[:2], nil) },
	} {
		t.Run(name, func(t *testing.T) {
			writeFile(t, file, change())
			for _, given := range [][]string{nil, {outside}} {
				if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: given}); r.Verdict != VerdictTampered {
					t.Errorf("%s %v", r.Verdict, r.Incomplete)
				}
			}
		})
	}
}

// CVE-2023-31438: an attacker can truncate a sealed log and resume sealing it, and verification passes.
// https://nvd.nist.gov/vuln/detail/CVE-2023-31438
func TestSystemdCVE2023_31438ALogIsTruncatedAndSealingResumes(t *testing.T) {
	m, outside := unsealed(t)
	file, lines := m.last(t)
	cut := bytes.Join(lines[:len(lines)-2], nil)
	m.close()
	writeFile(t, file, cut)
	// The checkpoints stay: the log itself refuses to sign on.
	if _, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}}); !IsFault(err) {
		t.Errorf("sealing is resumed: %v", err)
	}
	// They are cut back too, and somebody who has the key signs on.
	own := files(t, m.dir)[CheckpointFile]
	second := bytes.Index(own[1:], []byte("\n\n"+origin)) + 3
	writeFile(t, filepath.Join(m.dir, CheckpointFile), own[:second])
	again := &madeLog{tb: t, dir: m.dir, key: m.key, clock: m.clock.Add(time.Hour), file: file, bytes: int64(len(cut)), seq: m.seq - 2, prev: Leaf(bytes.TrimSuffix(lines[len(lines)-3], []byte("\n")))}
	again.open(Options{})
	for range 6 {
		again.write(again.line("request", "ResponseComplete", `,"what":{"method":"Rmdir"}`))
	}
	again.checkpoint()
	again.close()
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()}); r.Verdict == VerdictOK {
		t.Errorf("by itself: %s", r.Verdict)
	}
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}})
	if r.Verdict != VerdictTampered || !strings.Contains(r.Fault.Problem, "signs") {
		t.Errorf("with what was held elsewhere: %s %v", r.Verdict, r.Fault)
	}
}

// CVE-2023-31439: an attacker can modify the contents of past events in a sealed log and then adjust the file so that verification passes.
// https://nvd.nist.gov/vuln/detail/CVE-2023-31439
func TestSystemdCVE2023_31439PastEventsAreModifiedAndTheFileIsAdjusted(t *testing.T) {
	for from := uint64(2); from <= 8; from++ {
		m, outside := unsealed(t)
		m.close()
		forge(t, m, from) // all hashes from there on are made anew
		for _, given := range [][]string{nil, {outside}} {
			if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: given}); r.Verdict != VerdictTampered {
				t.Errorf("record %d: %s %v", from, r.Verdict, r.Incomplete)
			}
		}
	}
	m, outside := unsealed(t)
	m.close()
	content := files(t, m.dir)
	// The genuine segment stays, and another one is put in that takes its place, as an inserted object did in the journal.
	name := filepath.Base(m.file)
	changed := bytes.Replace(content[name], []byte("Mkdir"), []byte("Rmdir"), 1)
	changed = bytes.Replace(changed, []byte(`"log":{`), []byte(`"log":{"void":["`+name+`"],`), 1)
	writeFile(t, filepath.Join(m.dir, strings.Replace(name, "-0000-", "-1111-", 1)), changed)
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}}); r.Verdict != VerdictTampered {
		t.Errorf("a segment in place of another: %s %v", r.Verdict, r.Incomplete)
	}
}

// systemd #15425: what was appended behind the last seal is shown like all else, and verification says nothing of it.
// https://github.com/systemd/systemd/issues/15425
func TestSystemd15425AnUnsealedEndDoesNotPassForVerified(t *testing.T) {
	m, outside := unsealed(t)
	m.close() // seals what is there
	file, lines := m.last(t)
	// What anybody can write who can compute a hash.
	m.seq, m.prev = uint64(len(lines))+6, Leaf(bytes.TrimSuffix(lines[len(lines)-1], []byte("\n")))
	forged := append(m.line("request", "ResponseComplete", `,"what":{"method":"forged"}`), '\n')
	writeFile(t, file, append(bytes.Join(lines, nil), forged...))
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}})
	if want := fmt.Sprintf("records %d to %d are covered by no checkpoint", r.LastSeq, r.LastSeq); r.Verdict != VerdictIncomplete || r.OutsideCovered != r.LastSeq-1 ||
		!slices.ContainsFunc(r.Incomplete, func(s string) bool { return strings.HasPrefix(s, want) }) {
		t.Errorf("%s, covered up to %d of %d: %v", r.Verdict, r.OutsideCovered, r.LastSeq, r.Incomplete)
	}
	// Half a line, a hole, and a record behind the hole are none of the log.
	for name, more := range map[string]string{"half a line": `{"v":1,"seq":9`, "a hole": "\x00\x00\x00", "a record behind a hole": "\x00\n" + string(forged)} {
		writeFile(t, file, append(bytes.Join(lines, nil), more...))
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}})
		if r.Verdict != VerdictIncomplete || r.TornBytes != int64(len(more)) || r.LastSeq != r.OutsideCovered {
			t.Errorf("%s: %s, %d bytes behind record %d", name, r.Verdict, r.TornBytes, r.LastSeq)
		}
	}
}

// Bytes that a crash left are declared with their hash when the next segment is begun: nothing can be put in their place.
func TestTornBytesAreThoseThatStoodThere(t *testing.T) {
	torn := []byte(`{"v":1,"seq":4,"type":"requ`)
	sum := sha256.Sum256(torn)
	write := func(t *testing.T, hash string) (m *madeLog, first string) {
		m = newLog(t, Options{})
		m.begin(0)
		m.records(2)
		first = m.file
		m.raw(torn)
		rest := fmt.Sprintf(`"previous_session":"S","previous_seq":%d,"previous_segment":"%s","previous_bytes":%d,"torn_bytes":%d%s,`, m.seq, filepath.Base(m.file), m.bytes, len(torn), hash)
		m.file, m.bytes = filepath.Join(m.dir, m.name()), 0
		m.write(m.line("log", "LogOpen", `,"log":{`+rest+`"cause":"start"}`))
		m.records(2)
		m.checkpoint()
		m.end()
		m.close()
		return m, first
	}
	m, first := write(t, fmt.Sprintf(`,"previous_torn_hash":"%s"`, hex.EncodeToString(sum[:])))
	o := VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}
	if r := verify(t, o); r.Verdict != VerdictOK || r.IgnoredBytes != int64(len(torn)) {
		t.Errorf("as they were: %s %v %v", r.Verdict, r.Fault, r.Incomplete)
	}
	text, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	records := text[:len(text)-len(torn)]
	for name, c := range map[string]struct {
		behind []byte
		want   Verdict
	}{
		"another byte":              {append(bytes.Clone(torn[:len(torn)-1]), 'x'), VerdictTampered},
		"a record as long":          {append(bytes.Repeat([]byte(" "), len(torn)-1), '\n'), VerdictTampered},
		"more":                      {append(bytes.Clone(torn), 'x'), VerdictTampered},
		"fewer, as after a failure": {torn[:5], VerdictIncomplete},
		"none, as after a failure":  {nil, VerdictOK},
	} {
		writeFile(t, first, slices.Concat(records, c.behind))
		if r := verify(t, o); r.Verdict != c.want {
			t.Errorf("%s: %s %v %v, want %s", name, r.Verdict, r.Fault, r.Incomplete, c.want)
		}
	}
	m, _ = write(t, "")
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}})
	if r.Verdict != VerdictIncomplete || !strings.Contains(strings.Join(r.Incomplete, " "), "no hash holds") {
		t.Errorf("declared without a hash: %s %v", r.Verdict, r.Incomplete)
	}
}

// More than a crash leaves is read by no start, so that nothing says what it was.
func TestWhatIsTooLongForAHashIsHeldByNothing(t *testing.T) {
	const size = segment.MaxTorn + 1
	for name, isVoid := range map[string]bool{"torn bytes": false, "a void segment": true} {
		t.Run(name, func(t *testing.T) {
			m := newLog(t, Options{})
			m.begin(0)
			m.records(2)
			file, rest := m.file, fmt.Sprintf(`"torn_bytes":%d,`, size)
			if isVoid {
				file = filepath.Join(m.dir, m.name())
				rest = fmt.Sprintf(`"void":[%q],"void_held":["%d"],`, filepath.Base(file), size)
				writeFile(t, file, nil)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, info.Size()+size); err != nil { // a hole
				t.Fatal(err)
			}
			rest = fmt.Sprintf(`"previous_session":"S","previous_seq":%d,"previous_segment":"%s","previous_bytes":%d,%s`, m.seq, filepath.Base(m.file), m.bytes, rest)
			m.file, m.bytes = filepath.Join(m.dir, m.name()), 0
			m.write(m.line("log", "LogOpen", `,"log":{`+rest+`"cause":"start"}`))
			m.records(2)
			m.checkpoint()
			m.end()
			m.close()
			r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}})
			if r.Verdict != VerdictIncomplete || !strings.Contains(strings.Join(r.Incomplete, " "), "more than a crash leaves") {
				t.Errorf("%s %v, incomplete %v", r.Verdict, r.Fault, r.Incomplete)
			}
		})
	}
}

// What a search refuses, a verification refuses.
func TestALinkAndADirectoryInPlaceOfASegmentAreFaults(t *testing.T) {
	for name, put := range map[string]func(path, elsewhere string) error{
		"a link":      func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
		"a directory": func(path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, place := range []string{"a segment", "one more", CheckpointFile} {
			t.Run(name+" in place of "+place, func(t *testing.T) {
				m := sample(t)
				segments, checkpoints := paths(t, m)
				path := map[string]string{"a segment": segments[1], "one more": filepath.Join(m.dir, m.name()), CheckpointFile: checkpoints}[place]
				elsewhere := filepath.Join(t.TempDir(), "elsewhere")
				if err := os.Rename(path, elsewhere); err != nil && place != "one more" {
					t.Fatal(err)
				}
				if err := put(path, elsewhere); err != nil {
					t.Skip("cannot be made here:", err)
				}
				if info, err := os.Lstat(path); err != nil || name == "a link" && info.Mode()&os.ModeSymlink == 0 {
					t.Skip("what this system makes is no link:", err)
				}
				if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys()}); r.Verdict != VerdictTampered || r.Fault.File != path {
					t.Errorf("%s %v", r.Verdict, r.Fault)
				}
			})
		}
	}
}

// The next segment names the one before it; the last has only its own word.
func TestTheNameOfTheLastSegmentIsItsOwn(t *testing.T) {
	m := newLog(t, Options{})
	m.begin(0)
	m.end()
	m.file, m.bytes = filepath.Join(m.dir, m.name()), 0
	before := segmentNames(files(t, m.dir))[0]
	m.write(m.line("log", "LogOpen", fmt.Sprintf(`,"log":{"previous_segment":"%s","previous_bytes":%d,"segment":"%s"}`, before, len(files(t, m.dir)[before]), filepath.Base(m.file))))
	m.records(2)
	m.checkpoint()
	m.end()
	m.close()
	o := VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}}
	if r := verify(t, o); r.Verdict != VerdictOK {
		t.Fatalf("as it was named: %s %v %v", r.Verdict, r.Fault, r.Incomplete)
	}
	renamed := filepath.Join(m.dir, strings.Replace(filepath.Base(m.file), "-0000-", "-1111-", 1))
	if err := os.Rename(m.file, renamed); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, o); r.Verdict != VerdictTampered || r.Fault.File != renamed {
		t.Errorf("under another name: %s %v", r.Verdict, r.Fault)
	}
}

func TestCheckpointsThatAreGoneAreMentioned(t *testing.T) {
	m := sample(t)
	outside := m.outside()
	own := files(t, m.dir)[CheckpointFile]
	at := bytes.Index(own[1:], []byte("\n\n"+origin)) + 3
	writeFile(t, filepath.Join(m.dir, CheckpointFile), own[:at])
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}}); !strings.Contains(strings.Join(r.Limits, " "), "checkpoints were removed") {
		t.Errorf("all but the first: %s %v %v", r.Verdict, r.Incomplete, r.Limits)
	}
	for name, content := range map[string][]byte{"emptied": {}, "removed": nil} {
		writeFile(t, filepath.Join(m.dir, CheckpointFile), content)
		if content == nil {
			if err := os.Remove(filepath.Join(m.dir, CheckpointFile)); err != nil {
				t.Fatal(err)
			}
		}
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{outside}})
		if r.Verdict != VerdictIncomplete || !strings.Contains(strings.Join(r.Incomplete, " "), "no checkpoint lies beside the log") {
			t.Errorf("%s: %s %v", name, r.Verdict, r.Incomplete)
		}
	}
}
