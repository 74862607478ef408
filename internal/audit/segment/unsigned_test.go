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

// What the writer begins a segment with fits, whatever it has to say there.
func TestTheWritersOwnOpeningsFit(t *testing.T) {
	n := newNode(t)
	n.crash(t, 1)
	last, text, _ := n.end(t)
	n.put(t, last, text+`{"v":1,"seq":`+"\xff\x00") // torn bytes
	n.put(t, planted(900_000), "no record\n")       // void
	for range 2 {
		if err := n.start(t); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range n.segments(t) {
		if name == planted(900_000) {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(n.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(raw), "\n")
		if err := segment.Misfit(name, []byte(line)); err != nil {
			t.Errorf("%s: %v: %s", name, err, line)
		}
	}
}

// Behind a crash, a segment whose first record is none that opens it stops no start: it is left out, and the start and a verification name it and say why.
func TestASegmentWhoseOpeningDoesNotFitStopsNoStart(t *testing.T) {
	for name, c := range map[string]struct{ change, to, why string }{
		"of another file":         {`"segment":"audit-`, `"segment":"zudit-`, "it says that it belongs to zudit-"},
		"of a file elsewhere":     {`"segment":"`, `"segment":"../`, "it says that it belongs to ../audit-"},
		"less than nothing torn":  {`"cause"`, `"torn_bytes":-5,"cause"`, "it contains a negative number"},
		"a wrong name behind it":  {`"cause"`, `"segment":"zz","cause"`, `duplicate field "log.segment"`},
		"in other letters":        {`"cause"`, `"SEGMENT":"zz","cause"`, `unknown field "log.SEGMENT"`},
		"a cause twice":           {`"cause"`, `"cause":"size","cause"`, `duplicate field "log.cause"`},
		"an unknown field":        {`"cause"`, `"zz":1,"cause"`, `unknown field "log.zz"`},
		"a number that is a text": {`"cause"`, `"lost":"1","cause"`, "cannot unmarshal string"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.crash(t, 1)
			last, text, line := n.end(t)
			seq, _, _ := segment.ParseLine(line)
			leaf, planted := segment.Leaf(line), planted(seq+1)
			opening := begins(seq+1, base64.StdEncoding.EncodeToString(leaf[:]), fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,"segment":%q,"cause":"start"`, last, len(text), planted))
			n.put(t, planted, strings.Replace(opening, c.change, c.to, 1))
			names := func(texts ...string) bool {
				return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, planted) && strings.Contains(s, c.why) })
			}
			named := func(r evidence.Report) bool {
				return r.Fault != nil && filepath.Base(r.Fault.File) == planted && r.Fault.Line == 1 || names(r.Incomplete...)
			}
			if r := n.verify(t); r.Verdict == evidence.VerdictOK || !named(r) {
				t.Errorf("before the next start: %s %v %q", r.Verdict, r.Fault, r.Incomplete)
			}
			for range 2 {
				if err := n.start(t); err != nil {
					t.Fatalf("the log is not started: %v", err)
				}
				if !names(n.faults...) {
					t.Errorf("nobody is told: %q", n.faults)
				}
			}
			if r := n.verify(t); r.Fault == nil || !names(r.Fault.Error()) {
				t.Errorf("until it is moved away: %s %v", r.Verdict, r.Fault)
			}
			if err := os.Remove(filepath.Join(n.dir, planted)); err != nil {
				t.Fatal(err)
			}
			if r := n.verify(t); r.Verdict != evidence.VerdictIncomplete || r.OwnCovered != r.LastSeq {
				t.Errorf("once it was moved away: %s %v, %d of %d records signed", r.Verdict, r.Fault, r.OwnCovered, r.LastSeq)
			}
		})
	}
}

// A segment that says of the one before that more of it counts than is there follows nothing, and stops no start either.
func TestASegmentThatSaysMoreOfAnotherThanIsThereStopsNoStart(t *testing.T) {
	for name, bytes := range map[string]func(size int64) int64{
		"one byte": func(size int64) int64 { return size + 1 }, "much": func(size int64) int64 { return size + 5_000_000 },
		"more than a file has": func(int64) int64 { return 1<<63 - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.crash(t, 1)
			last, text, line := n.end(t)
			seq, _, _ := segment.ParseLine(line)
			leaf, planted := segment.Leaf(line), planted(seq+1)
			n.put(t, planted, begins(seq+1, base64.StdEncoding.EncodeToString(leaf[:]),
				fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,"segment":%q,"cause":"start"`, last, bytes(int64(len(text))), planted)))
			if r := n.verify(t); r.Verdict == evidence.VerdictOK {
				t.Error("a verification says nothing of it")
			}
			n.startsWithout(t, planted)
		})
	}
}

// A segment that follows on what was signed, and says of what stands there unsigned what is not so, stops no start. Nothing of it is taken for the log's, and nothing
// that stands there is put out of sight by it.
func TestASegmentThatSaysLessOfAnotherThanIsThereStopsNoStart(t *testing.T) {
	hashOf := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	for name, torn := range map[string]func(behind string) string{
		"nothing": func(string) string { return "" },
		"none":    func(string) string { return `"torn_bytes":0,` },
		"less": func(b string) string {
			return fmt.Sprintf(`"torn_bytes":%d,"previous_torn_hash":%q,`, len(b)-1, hashOf(b[:len(b)-1]))
		},
		"without a hash": func(b string) string { return fmt.Sprintf(`"torn_bytes":%d,`, len(b)) },
		"with another hash": func(b string) string {
			return fmt.Sprintf(`"torn_bytes":%d,"previous_torn_hash":%q,`, len(b), hashOf("x"))
		},
		"more without a hash": func(b string) string { return fmt.Sprintf(`"torn_bytes":%d,`, len(b)+1) },
		"less than nothing":   func(string) string { return `"torn_bytes":-1,` },
		"with the hash in caps": func(b string) string {
			return fmt.Sprintf(`"torn_bytes":%d,"previous_torn_hash":%q,`, len(b), strings.ToUpper(hashOf(b)))
		},
	} {
		for _, halfLine := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, half a line %t", name, halfLine), func(t *testing.T) {
				n := newNode(t)
				n.crash(t, 1)
				last, text, line := n.end(t)
				seq, _, _ := segment.ParseLine(line)
				if halfLine {
					n.put(t, last, text+`{"v":1,"seq"`)
				} else {
					lines := slices.Collect(strings.Lines(text))
					line = []byte(strings.TrimSuffix(lines[len(lines)-2], "\n"))
					text, seq = strings.Join(lines[:len(lines)-1], ""), seq-1
				}
				whole, err := os.ReadFile(filepath.Join(n.dir, last))
				if err != nil {
					t.Fatal(err)
				}
				leaf, planted := segment.Leaf(line), planted(seq+1)
				n.put(t, planted, begins(seq+1, base64.StdEncoding.EncodeToString(leaf[:]),
					fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,%s"segment":%q,"cause":"start"`, last, len(text), torn(string(whole[len(text):])), planted)))
				n.startsWithout(t, planted)
			})
		}
	}
}

// startsWithout starts the log twice beside a planted segment, which must be named and left out, and verifies it once that is gone.
func (n *node) startsWithout(t *testing.T, planted string) {
	t.Helper()
	for range 2 {
		if err := n.start(t); err != nil {
			t.Fatalf("the log is not started: %v", err)
		}
		if !slices.ContainsFunc(n.faults, func(s string) bool { return strings.Contains(s, "left out: "+planted) }) {
			t.Errorf("nobody is told: %q", n.faults)
		}
	}
	if err := os.Remove(filepath.Join(n.dir, planted)); err != nil {
		t.Fatal(err)
	}
	if r := n.verify(t); r.Fault != nil || r.OwnCovered != r.LastSeq {
		t.Errorf("once it was moved away: %s %v, %d of %d records signed", r.Verdict, r.Fault, r.OwnCovered, r.LastSeq)
	}
}

// A segment that was not signed is not replaced by one that declares it void: as of any two that both go on from what was signed, nothing tells which is genuine.
func TestAnUnsignedSegmentIsNotReplacedByOneThatDeclaresItVoid(t *testing.T) {
	for _, id := range []string{"00000000", "ffffffff"} { // in front of the genuine one, and behind it
		t.Run(id, func(t *testing.T) {
			n := newNode(t)
			if err := n.start(t); err != nil {
				t.Fatal(err)
			}
			n.crash(t, 1)
			last, text, _ := n.end(t)
			signed, err := evidence.LastSigned(n.dir, nil, nil)
			first, _ := segment.ParseName(last)
			if err != nil || first <= signed.Size || strings.Count(text, "\n") < 2 {
				t.Fatalf("%d lines from record %d, %d signed: %v", strings.Count(text, "\n"), first, signed.Size, err)
			}
			as := last[:27] + id + last[35:]
			opening, _, _ := strings.Cut(text, "\n")
			opening = strings.Replace(opening, `"segment":"`+last, `"segment":"`+as, 1)
			n.put(t, as, strings.Replace(opening, `"log":{`, fmt.Sprintf(`"log":{"void":[%q],"void_held":["%d %x"],`, last, len(text), sha256.Sum256([]byte(text))), 1)+"\n")
			if err := n.start(t); err == nil {
				t.Fatal("one of two segments was taken for the genuine one")
			}
			if err := os.Remove(filepath.Join(n.dir, as)); err != nil {
				t.Fatal(err)
			}
			if err := n.start(t); err != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(filepath.Join(n.dir, last)); err != nil || !strings.HasPrefix(string(now), text) {
				t.Errorf("the genuine one is not as it was: %v", err)
			}
			if r := n.verify(t); r.Verdict != evidence.VerdictOK && r.Fault != nil || r.OwnCovered != r.LastSeq {
				t.Errorf("%s %v", r.Verdict, r.Fault)
			}
		})
	}
}

// Segments that are well begun and hold what no writer writes stop no start, whatever it is.
func TestWhatIsInPlantedSegmentsStopsNoStart(t *testing.T) {
	record := func(seq uint64, prev string) string {
		return fmt.Sprintf(`{"v":1,"seq":%d,"type":"connection","stage":"ConnectionClosed","time":"2026-03-02T12:00:00Z","session":"s","id":"1","outcome":{"result":"idle"},"prev":"%s"}`, seq, prev)
	}
	leafOf := func(line string) string {
		leaf := segment.Leaf([]byte(line))
		return base64.StdEncoding.EncodeToString(leaf[:])
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- to be repeated
		n := newNode(t)
		n.crash(t, 1)
		before, text, line := n.end(t)
		seq, _, _ := segment.ParseLine(line)
		previous, log := leafOf(string(line)), text
		var told []string
		for range 1 + random.IntN(3) {
			name := planted(seq + 1)
			behind := log[len(text):]
			torn := ""
			if behind != "" {
				torn = fmt.Sprintf(`"torn_bytes":%d,"previous_torn_hash":"%x",`, len(behind), sha256.Sum256([]byte(behind)))
			}
			opening := begins(seq+1, previous, fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,%s"segment":%q,"cause":"start"`, before, len(text), torn, name))
			if seq++; random.IntN(20) == 0 {
				opening = strings.Replace(opening, `"cause":"start"`, fmt.Sprintf(`"cause":"start","void":[%q]`, before), 1)
			}
			log, previous = opening, leafOf(strings.TrimSuffix(opening, "\n"))
			text = log
			for range random.IntN(6) {
				next := record(seq+1, previous)
				kind := random.IntN(14)
				switch kind {
				case 0:
					next = record(seq+3, previous)
				case 1:
					next = record(seq, previous)
				case 2:
					next = record(seq+1, noHash)
				case 3:
					next = "no record"
				case 4:
					next = ""
				case 5:
					next = strings.Replace(next, "ConnectionClosed", "LogClose", 1)
				case 6:
					next = strings.Replace(next, `"type"`, `"type":"log","type"`, 1)
				case 7:
					next = strings.TrimSuffix(begins(seq+1, previous, `"cause":"start"`), "\n")
				case 8:
					next = record(1<<63, previous)
				}
				log += next + "\n"
				if seq++; kind != 3 && kind != 4 {
					previous = leafOf(next)
				}
				if random.IntN(3) > 0 {
					text = log // where the next one says that this one ends
				}
			}
			if random.IntN(4) == 0 {
				log += `{"half`
			}
			n.put(t, name, log)
			before, told = name, append(told, log)
		}
		for range 2 {
			if err := n.start(t); err != nil {
				t.Fatalf("seed %d: the log is not started: %v\n%s", seed, err, strings.Join(told, "----\n"))
			}
		}
	}
}

// A start tells of a segment that nobody signed and that takes records out of the log which continue it.
func TestASegmentThatOverrulesRecordsIsTold(t *testing.T) {
	n := newNode(t)
	n.crash(t, 1)
	last, text, _ := n.end(t)
	lines := slices.Collect(strings.Lines(text))
	line := strings.TrimSuffix(lines[len(lines)-2], "\n")
	seq, _, _ := segment.ParseLine([]byte(line))
	overruled := lines[len(lines)-1]
	leaf, planted := segment.Leaf([]byte(line)), planted(seq+1)
	n.put(t, planted, begins(seq+1, base64.StdEncoding.EncodeToString(leaf[:]), fmt.Sprintf(`"previous_segment":%q,"previous_bytes":%d,"torn_bytes":%d,"previous_torn_hash":"%x","segment":%q,"cause":"start"`,
		last, len(text)-len(overruled), len(overruled), sha256.Sum256([]byte(overruled)), planted)))
	told := func() bool {
		return slices.ContainsFunc(n.faults, func(s string) bool {
			return strings.Contains(s, "segment "+planted) && strings.Contains(s, "says that the log ends before record")
		})
	}
	if err := n.start(t); err != nil || !told() {
		t.Errorf("%v, and told: %q", err, n.faults)
	}
	if err := n.start(t); err != nil || told() {
		t.Errorf("it is signed now: %v, and told: %q", err, n.faults)
	}
}
