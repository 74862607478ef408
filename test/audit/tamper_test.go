package audit

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/harness"
)

// edit is one way to lie with a log.
type edit struct {
	what string
	now  content
	// want is the verdict with the key and the last checkpoint from elsewhere; empty for any but ok.
	want evidence.Verdict
}

// samples is how many edits of each kind are tried; PIPEGUARD_SAMPLES makes it more. PIPEGUARD_EXHAUSTIVE leaves none of them out.
func samples(t *testing.T, usually int) int {
	text := os.Getenv("PIPEGUARD_SAMPLES")
	if text == "" {
		return usually
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// with is the log with another text in one file, or without it if the text is nil.
func (l *long) with(name string, text []byte) content {
	c := maps.Clone(l.content)
	if c[name] = text; text == nil {
		delete(c, name)
	}
	return c
}

// edits are n of each kind at random places, those of few places whole. Every bit and record of such a log is tried one by one where
// lines are verified, in internal/audit/evidence; here whole logs are.
func (l *long) edits(t *testing.T, n int) (all []edit) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same each time
	add := func(want evidence.Verdict, now content, what string, args ...any) {
		all = append(all, edit{fmt.Sprintf(what, args...), now, want})
	}
	const bad = evidence.VerdictTampered
	place := func() (name string, lines [][]byte, i int) {
		name = l.names[random.IntN(len(l.names))]
		lines = l.lines(name)
		return name, lines, random.IntN(len(lines))
	}
	flip := func(text []byte, bit int) []byte {
		edited := bytes.Clone(text)
		edited[bit/8] ^= 1 << (bit % 8)
		return edited
	}
	join := func(lines ...[][]byte) []byte { return bytes.Join(slices.Concat(lines...), nil) }
	for range n {
		name, lines, i := place()
		bit := random.IntN(len(l.content[name]) * 8)
		add(bad, l.with(name, flip(l.content[name], bit)), "bit %d of segment %s", bit, part(name))
		add(bad, l.with(name, join(lines[:i], lines[i+1:])), "segment %s without line %d", part(name), i+1)
		add(bad, l.with(name, join(lines[:i+1], lines[i:])), "segment %s with line %d twice", part(name), i+1)
		add(bad, l.with(name, join(lines[:i])), "segment %s cut before line %d", part(name), i+1)
		if i > 0 {
			add(bad, l.with(name, join(lines[:i-1], lines[i:i+1], lines[i-1:i], lines[i+1:])), "segment %s with lines %d and %d swapped", part(name), i, i+1)
		}
		cut := random.IntN(len(l.content[name]))
		add(bad, l.with(name, l.content[name][:cut]), "segment %s cut to %d bytes", part(name), cut)
		_, others, k := place()
		add(bad, l.with(name, join(lines[:i], others[k:k+1], lines[i:])), "segment %s with another line before line %d", part(name), i+1)
		add(bad, l.rehashed(t, name, i), "segment %s with line %d changed, and all hashes behind it made anew", part(name), i+1)
	}
	for s, name := range l.names {
		add(bad, l.with(name, nil), "without segment %s", part(name))
		add(bad, l.with(name, []byte{}), "with an empty segment %s", part(name))
		moved := l.with(name, nil)
		moved["audit"+name] = l.content[name]
		add(bad, moved, "segment %s under another kind of name", part(name))
		first, _ := segment.ParseName(name)
		for _, n := range []uint64{first - 1, first + 1, first + 3333} {
			if n == 0 {
				continue
			}
			moved := l.with(name, nil)
			moved[segment.Name(n)] = l.content[name]
			add(bad, moved, "segment %s as segment %d", part(name), n)
		}
		doubled := maps.Clone(l.content)
		doubled[segment.Name(first)] = l.content[name]
		add(bad, doubled, "segment %s twice", part(name))
		for _, other := range l.names[s+1:] {
			swapped := l.with(name, l.content[other])
			swapped[other] = l.content[name]
			add(bad, swapped, "segments %s and %s in each other's place", part(name), part(other))
		}
		lines := l.lines(name) // the places where segments meet
		for _, i := range []int{0, 1, len(lines) - 2, len(lines) - 1} {
			add(bad, l.with(name, join(lines[:i], lines[i+1:])), "segment %s without line %d", part(name), i+1)
			add(bad, l.with(name, join(lines[:i])), "segment %s cut before line %d", part(name), i+1)
			for bit := range 8 {
				add(bad, l.with(name, flip(l.content[name], (len(join(lines[:i+1]))-1)*8+bit)), "segment %s, bit %d of the newline of line %d", part(name), bit, i+1)
			}
		}
	}
	own := l.content[evidence.CheckpointFile]
	for bit := 0; bit < len(own)*8; bit += max(1, len(own)*8/(4*n)) | 1 {
		add("", l.with(evidence.CheckpointFile, flip(own, bit)), "bit %d of the checkpoints", bit)
	}
	add("", l.with(evidence.CheckpointFile, own[:len(own)-7]), "checkpoints that are cut")
	add("", l.with(evidence.CheckpointFile, append(bytes.Clone(own), "x\n"...)), "checkpoints and a line")
	for i, past := range l.past { // rolled back, log and checkpoints together
		add(bad, past, "as it was %d checkpoints before its end", len(l.past)-i)
	}
	return all
}

// rehashed changes a record and makes all that follows fit it, as somebody does who knows the format and has no key.
func (l *long) rehashed(t *testing.T, from string, at int) content {
	c := maps.Clone(l.content)
	var prev []byte
	before, size := "", 0
	for _, name := range l.names[slices.Index(l.names, from):] {
		lines := l.lines(name)
		for i := range lines {
			line := bytes.Clone(lines[i])
			if name == from && i < at {
				continue
			}
			if name == from && i == at {
				line = bytes.Replace(line, []byte(`"session":"`), []byte(`"session":"0`), 1)
			}
			if before != "" && i == 0 {
				line = bytes.Replace(line, fmt.Appendf(nil, `"previous_bytes":%d`, len(l.content[before])), fmt.Appendf(nil, `"previous_bytes":%d`, size), 1)
			}
			if prev != nil {
				copy(line[len(line)-len(prev)-len("\"}\n"):], prev)
			}
			leaf := evidence.Leaf(line[:len(line)-1])
			prev = []byte(base64.StdEncoding.EncodeToString(leaf[:]))
			lines[i] = line
		}
		c[name] = bytes.Join(lines, nil)
		before, size = name, len(c[name])
	}
	if bytes.Equal(c[from], l.content[from]) {
		t.Fatal("nothing was changed")
	}
	return c
}

func TestEveryLieWithALongLogIsFound(t *testing.T) {
	l := longLog(t)
	dir := t.TempDir()
	l.write(t, dir, nil)
	before := l.content
	kinds := map[evidence.Verdict]int{}
	all := l.edits(t, samples(t, 4))
	if os.Getenv("PIPEGUARD_EXHAUSTIVE") == "" && os.Getenv("PIPEGUARD_SAMPLES") == "" { // each is a verification of the whole log
		few := all[:0:0]
		for i := 0; i < len(all); i += 5 {
			few = append(few, all[i])
		}
		all = few
	}
	for _, e := range append(all, edit{"as it was", l.content, evidence.VerdictOK}) {
		e.now.write(t, dir, before)
		before = e.now
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: l.keys, Outside: []string{l.outside}})
		if err != nil || r.Verdict != e.want && e.want != "" || e.want == "" && r.Verdict == evidence.VerdictOK {
			t.Errorf("%s: %v %s, want %s", e.what, err, r.Verdict, e.want)
		}
		kinds[r.Verdict]++
	}
	t.Logf("%d edits of %d segments: %v", len(all), len(l.names), kinds)
}

// A log that was set back with its own checkpoints is a log that ends there, to whoever has no checkpoint from elsewhere: never ok.
func TestWithoutACheckpointFromElsewhereARollbackIsIncomplete(t *testing.T) {
	l := longLog(t)
	for i, past := range append(l.past, l.content) {
		dir := t.TempDir()
		past.write(t, dir, nil)
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: l.keys})
		if err != nil || r.Verdict != evidence.VerdictIncomplete {
			t.Errorf("checkpoint %d: %v %s %v", i, err, r.Verdict, r.Fault)
		}
	}
}

func TestASecondVerifierFindsTheSameLies(t *testing.T) {
	interpreter := python(t)
	l := longLog(t)
	dir := t.TempDir()
	l.write(t, dir, nil)
	before := l.content
	all := l.edits(t, 2)
	n := samples(t, 8)
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] }) //nolint:gosec // the same each time
	all = append(all[:min(n, len(all))], edit{"as it was", l.content, evidence.VerdictOK})
	for _, e := range all {
		e.now.write(t, dir, before)
		before = e.now
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: l.keys, Outside: []string{l.outside}})
		if err != nil {
			t.Fatal(err)
		}
		second := secondVerdict(t, interpreter, dir, l.vkey, l.outside)
		if r.Verdict != second && (e.want != "" || second == evidence.VerdictOK || r.Verdict == evidence.VerdictOK) {
			t.Errorf("%s: the first says %s, the second %s", e.what, r.Verdict, second)
		}
	}
	t.Logf("%d logs of %d segments", len(all), len(l.names))
}

// secondVerdict runs verify.py, whose exit codes are those of pipeguard audit verify.
func secondVerdict(t *testing.T, interpreter string, args ...string) evidence.Verdict {
	t.Helper()
	out, errOut, code, err := harness.Run(exec.Command(interpreter, append([]string{filepath.Join(".", "verify.py")}, args...)...)) //nolint:gosec // the verifier beside this file
	if err != nil {
		t.Fatal(err)
	}
	verdict := map[int]evidence.Verdict{0: evidence.VerdictOK, 1: evidence.VerdictTampered, 3: evidence.VerdictIncomplete}[code]
	if verdict == "" || !strings.HasPrefix(out, string(verdict)) {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	return verdict
}
