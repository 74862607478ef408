package segment_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// next is a record behind a line.
func next(line []byte, stage string) string {
	seq, _, _ := segment.ParseLine(line)
	return fmt.Sprintf(`{"v":1,"seq":%d,"type":"request","stage":"%s","time":"2026-03-02T12:00:00Z","session":"s","id":"forged","prev":"%s"}`, seq+1, stage, prevOf(line))
}

func prevOf(line []byte) string {
	leaf := segment.Leaf(line)
	return base64.StdEncoding.EncodeToString(leaf[:])
}

func (n *node) tells(texts ...string) bool {
	return slices.ContainsFunc(n.faults, func(f string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(f, text) })
	})
}

// hole makes a file, or one longer, with nothing in it that takes room on the disk.
func (n *node) hole(t *testing.T, name string, behind int64) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(n.dir, name), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only made longer
	info, err := file.Stat()
	if err == nil {
		err = file.Truncate(info.Size() + behind)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A segment whose first write was lost is no longer than that. A longer file with its name is named, not declared, and the same at each start.
func TestFilesWithoutARecordThatNoCrashLeavesAreNotDeclared(t *testing.T) {
	n := newNode(t)
	due := n.verify(t).LastSeq + 1
	var large []string
	for i := range 40 {
		name := strings.Replace(planted(due), "-0b7e", fmt.Sprintf("-%02d7e", i), 1)
		n.hole(t, name, segment.MaxTorn)
		large = append(large, name)
	}
	small := planted(due)
	n.hole(t, small, segment.MaxLost)
	for range 2 {
		if err := n.start(t); err != nil {
			t.Fatal(err)
		}
		if !n.tells(large[0], "more than a crash leaves") || !n.tells("and 8 more") || len(n.faults) > 34 {
			t.Errorf("%d faults are told: %q", len(n.faults), n.faults)
		}
	}
	r := n.verify(t)
	if !slices.Equal(r.Void, []string{small}) || r.Fault != nil || !strings.Contains(strings.Join(r.Incomplete, "\n"), large[0]) {
		t.Errorf("%v, declared are %q, and named %q", r.Fault, r.Void, r.Incomplete)
	}
}

// A file whose first record says that it is of another name is no part of the log, and no rival of the one that has that name.
func TestACopyUnderAnotherNameStopsNoStart(t *testing.T) {
	for name, records := range map[string]int{"after a kill": 2, "after an orderly stop": 0} {
		for _, which := range []string{"first", "last"} {
			for _, seq := range []string{"its own", "the number that is due"} {
				t.Run(name+", the "+which+", with "+seq, func(t *testing.T) {
					n := newNode(t)
					if records > 0 {
						n.crash(t, records)
					}
					original, text, line := n.end(t)
					last, _, _ := segment.ParseLine(line)
					if which == "first" {
						original = n.segments(t)[0]
						raw, err := os.ReadFile(filepath.Join(n.dir, original))
						if err != nil {
							t.Fatal(err)
						}
						text = string(raw)
					}
					first, _ := segment.ParseName(original)
					why := "it says that it belongs to " + original
					if seq != "its own" {
						why = fmt.Sprintf("it is record %d, but the name of its file has %d", first, last+1)
						first = last + 1
					}
					as := planted(first)
					n.put(t, as, text)
					if err := n.start(t); err != nil {
						t.Fatal(err)
					}
					if !n.tells("left out: "+as, why) {
						t.Errorf("nobody is told why: %q", n.faults)
					}
					if r := n.verify(t); r.Fault == nil || filepath.Base(r.Fault.File) != as {
						t.Errorf("a verification says %v", r.Fault)
					}
					if err := os.Remove(filepath.Join(n.dir, as)); err != nil {
						t.Fatal(err)
					}
					if r := n.verify(t); r.Fault != nil || r.OwnCovered != r.LastSeq {
						t.Errorf("once it was moved away: %v, %d of %d records signed", r.Fault, r.OwnCovered, r.LastSeq)
					}
				})
			}
		}
	}
}

// A line behind the last checkpoint that does not continue the log stops no start: nothing is of the log from it on, and everybody is told.
func TestAChangedLineInAnUnsignedTailStopsNoStart(t *testing.T) {
	for name, change := range map[string]func(lines []string, last []byte) string{
		"a bit of a record":             func(l []string, _ []byte) string { return flip(l, len(l)-2, 150) },
		"a bit that makes it no record": func(l []string, _ []byte) string { return flip(l, len(l)-2, 5) },
		"a newline":                     func(l []string, _ []byte) string { return flip(l, len(l)-2, len(l[len(l)-2])-1) },
		"a wrong number": func(l []string, last []byte) string {
			return strings.Join(l, "") + strings.Replace(next(last, "Panic"), `"seq":`, `"seq":1`, 1) + "\n"
		},
		"a wrong hash": func(l []string, last []byte) string {
			return strings.Join(l, "") + strings.Replace(next(last, "Panic"), prevOf(last), noHash, 1) + "\n"
		},
		"a LogOpen record": func(l []string, last []byte) string {
			return strings.Join(l, "") + strings.Replace(next(last, "LogOpen"), `"request"`, `"log"`, 1) + "\n"
		},
		"a long stage": func(l []string, last []byte) string {
			return strings.Join(l, "") + next(last, strings.Repeat("x", 65)) + "\n"
		},
		"much that is none": func(l []string, _ []byte) string { return strings.Join(l, "") + strings.Repeat("x\n", segment.MaxLost) },
		"a long line": func(l []string, _ []byte) string {
			return strings.Join(l, "") + strings.Repeat("x", segment.MaxLost+1) + "\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.crash(t, 1)
			last, text, line := n.end(t)
			for range 3 {
				line = []byte(next(line, "Panic"))
				text += string(line) + "\n"
			}
			n.put(t, last, change(slices.Collect(strings.Lines(text)), line))
			signed, err := evidence.LastSigned(n.dir, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := n.start(t); err != nil {
				t.Fatal(err)
			}
			if !n.tells("audit log: ", last, "left out") {
				t.Errorf("nobody is told: %q", n.faults)
			}
			r := n.verify(t)
			if r.Verdict == evidence.VerdictOK || r.Fault != nil || r.IgnoredBytes == 0 || r.OwnCovered != r.LastSeq || r.LastSeq <= signed.Size || !strings.Contains(strings.Join(r.Declared, "\n"), "left out") {
				t.Errorf("%s %v, %d bytes ignored, %d of %d records signed, %q", r.Verdict, r.Fault, r.IgnoredBytes, r.OwnCovered, r.LastSeq, r.Declared)
			}
		})
	}
}

// flip changes a bit of a line.
func flip(lines []string, i, at int) string {
	line := []byte(lines[i])
	line[at] ^= 1
	return strings.Join(lines[:i], "") + string(line) + strings.Join(lines[i+1:], "")
}

// Of two segments that follow the same one, one that holds what no writer and no crash leaves is no rival. Where there is no other, the log ends before that.
func TestASegmentWithAWrongLineIsNoRivalOfOneWithout(t *testing.T) {
	for wrong := range 2 {
		n := newNode(t)
		n.crash(t, 2)
		names := n.plantBehind(t, 2)
		text, err := os.ReadFile(filepath.Join(n.dir, names[wrong]))
		if err != nil {
			t.Fatal(err)
		}
		n.put(t, names[wrong], string(text)+"no record\n")
		if err := n.start(t); err != nil {
			t.Fatal(err)
		}
		if !n.tells("left out: " + names[wrong]) {
			t.Errorf("nobody is told: %q", n.faults)
		}
		if err := os.Remove(filepath.Join(n.dir, names[wrong])); err != nil {
			t.Fatal(err)
		}
		if r := n.verify(t); r.Fault != nil || r.OwnCovered != r.LastSeq || !n.hasForged(t, r) {
			t.Errorf("%v, %d of %d records signed", r.Fault, r.OwnCovered, r.LastSeq)
		}
	}
	n := newNode(t)
	n.crash(t, 2)
	name := n.plantBehind(t, 1)[0]
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	n.put(t, name, string(text)+"no record\n")
	if err := n.start(t); err != nil || !n.tells("audit log: ", name, "left out") {
		t.Errorf("%v, and told: %q", err, n.faults)
	}
	if r := n.verify(t); r.Fault != nil || r.IgnoredBytes != int64(len("no record\n")) || !n.hasForged(t, r) {
		t.Errorf("%v, %d bytes ignored", r.Fault, r.IgnoredBytes)
	}
}

// No crash leaves anything behind the record that closed a log in order.
func TestWhatStandsBehindASignedEndIsNamed(t *testing.T) {
	for name, behind := range map[string]string{
		"a byte": "x", "a long line": strings.Repeat("x", segment.MaxLost+1) + "\n", "no newline": strings.Repeat("x", segment.MaxLost+1), "zeros": strings.Repeat("\x00", 5_000),
	} {
		for _, isForged := range []bool{false, true} {
			n := newNode(t)
			last, text, line := n.end(t)
			if isForged {
				behind += "\n" + next(line, "ResponseComplete") + "\n"
			}
			n.put(t, last, text+behind)
			if err := n.start(t); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := fmt.Sprintf("%d bytes stand behind the record that closed %s", len(behind), last)
			if !n.tells("audit log: " + want) {
				t.Errorf("%s: nobody is told: %q", name, n.faults)
			}
			if r := n.verify(t); r.Fault != nil || r.IgnoredBytes != int64(len(behind)) || !strings.Contains(strings.Join(r.Declared, "\n"), want) || n.hasForged(t, r) {
				t.Errorf("%s: %s %v, %d bytes ignored, %q", name, r.Verdict, r.Fault, r.IgnoredBytes, r.Declared)
			}
		}
	}
}

// A verification reads no more behind the records of unsigned segments than a start does.
func TestAVerificationReadsHolesBehindAddedSegmentsUpToABound(t *testing.T) {
	n := newNode(t)
	n.crash(t, 1)
	before, text, line := n.end(t)
	size, torn := int64(len(text)), ""
	zeros := fmt.Sprintf(`"torn_bytes":%d,"previous_torn_hash":"%x",`, int64(segment.MaxTorn), sha256.Sum256(make([]byte, segment.MaxTorn)))
	var added []string
	for range 2 * segment.MaxUnsignedTorn / segment.MaxTorn {
		seq, _, _ := segment.ParseLine(line)
		name := planted(seq + 1)
		opening := begins(seq+1, prevOf(line), fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,%s"segment":%q,"cause":"start"`, before, size, torn, name))
		n.put(t, name, opening)
		n.hole(t, name, segment.MaxTorn)
		added = append(added, name)
		before, size, line, torn = name, int64(len(opening)), []byte(strings.TrimSuffix(opening, "\n")), zeros
	}
	const most = segment.MaxUnsignedTorn / segment.MaxTorn
	if r := n.verify(t); !strings.Contains(strings.Join(r.Incomplete, "\n"), added[most+1]+" is not signed, and a start leaves it out, with the segments that continue it") {
		t.Errorf("what is not read is not named: %v %q", r.Fault, r.Incomplete)
	}
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
	for i, name := range added {
		if n.tells("left out: "+name) != (i > most) {
			t.Errorf("segment %d: %q", i, n.faults)
		}
	}
}

// Whatever one hand writes behind the last checkpoint, where it does not know the key, the next start goes on.
func TestWhateverStandsBehindTheLastCheckpointStopsNoStart(t *testing.T) {
	changes := []func(line string, r *rand.Rand) string{
		func(l string, _ *rand.Rand) string { return l },
		func(l string, r *rand.Rand) string {
			return strings.Replace(l, `"request"`, `"`+strings.Repeat("x", 60+r.IntN(10))+`"`, 1)
		},
		func(l string, r *rand.Rand) string {
			return strings.Replace(l, `"Panic"`, `"`+strings.Repeat("x", 60+r.IntN(10))+`"`, 1)
		},
		func(l string, _ *rand.Rand) string { return strings.Replace(l, `"Panic"`, `"P\u0061nic"`, 1) },
		func(l string, _ *rand.Rand) string { return strings.Replace(l, `"request"`, `"re\"quest"`, 1) },
		func(l string, _ *rand.Rand) string { return strings.Replace(l, `"v":1`, `"v":01`, 1) },
		func(l string, _ *rand.Rand) string { return strings.Replace(l, `"v":1`, `"v":2`, 1) },
		func(l string, _ *rand.Rand) string { return strings.Replace(l, `"seq":`, `"seq":0`, 1) },
		func(l string, _ *rand.Rand) string {
			return strings.Replace(l, `"seq":`, `"seq":18446744073709551615`, 1)
		},
		func(l string, _ *rand.Rand) string {
			return strings.Replace(l, `"id":"forged"`, `"id":"forged","intent_seq":18446744073709551615`, 1)
		},
		func(l string, _ *rand.Rand) string {
			return strings.Replace(l, `"id":"forged"`, `"id":"forged","intent_seq":00`, 1)
		},
		func(l string, _ *rand.Rand) string {
			return strings.Replace(l, `"id":"forged"`, `"id":"forged","prev":"x"`, 1)
		},
		func(l string, _ *rand.Rand) string { return strings.Replace(l, `"id":"forged"`, `"id":{"x":[1]}`, 1) },
		func(l string, _ *rand.Rand) string {
			return strings.Replace(l, `"request","stage":"Panic"`, `"log","stage":"LogOpen"`, 1)
		},
		func(l string, _ *rand.Rand) string {
			return strings.Replace(l, `"request","stage":"Panic"`, `"log","stage":"LogClose"`, 1)
		},
		func(l string, _ *rand.Rand) string {
			return strings.Replace(l, `"request","stage":"Panic"`, `"log","stage":"LogPrune"`, 1)
		},
		func(l string, r *rand.Rand) string {
			return strings.Replace(l, `forged`, strings.Repeat("y", 8000-r.IntN(200)), 1)
		},
		func(l string, r *rand.Rand) string {
			i := r.IntN(len(l))
			return l[:i] + string(rune(r.IntN(128))) + l[i+1:]
		},
		func(l string, r *rand.Rand) string { return l[:r.IntN(len(l))] },
		func(l string, _ *rand.Rand) string { return strings.Replace(l, `,"stage"`, ` ,"stage"`, 1) },
		func(string, *rand.Rand) string { return "" },
		func(string, *rand.Rand) string { return strings.Repeat("\x00", 9000) },
	}
	for seed := range uint64(2 * len(changes)) {
		r := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- to be repeated
		n := newNode(t)
		n.crash(t, 1+r.IntN(2))
		name, text, line := n.end(t)
		if seed%2 == 0 {
			seq, _, _ := segment.ParseLine(line)
			as := planted(seq + 1)
			text = begins(seq+1, prevOf(line), fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,"segment":%q,"cause":"start"`, name, len(text), as))
			name, line = as, []byte(strings.TrimSuffix(text, "\n"))
		}
		for i := range 1 + r.IntN(4) {
			change := changes[r.IntN(len(changes))]
			if i == 0 {
				change = changes[seed/2%uint64(len(changes))]
			}
			line = []byte(change(next(line, "Panic"), r))
			text += string(line) + "\n"
		}
		n.put(t, name, text)
		for range 2 {
			if err := n.start(t); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
		}
		if v := n.verify(t); v.Fault != nil || v.OwnCovered != v.LastSeq {
			t.Errorf("seed %d: %v, %d of %d records signed\n%s", seed, v.Fault, v.OwnCovered, v.LastSeq, text)
		}
	}
}
