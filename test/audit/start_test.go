package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// grownStart is the start of a pruned log, grown by records: the tree of all of them, which whoever reads the log can make without a key.
func grownStart(t *testing.T, start []byte, records [][]byte) []byte {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(start), "\n"), "\n")
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var roots [][]byte // of whole subtrees, largest first
	for _, l := range lines[2:] {
		root, err := base64.StdEncoding.DecodeString(l)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	for _, r := range records {
		leaf := evidence.Leaf(r)
		root := leaf[:]
		for n := size; n&1 == 1; n >>= 1 {
			sum := sha256.Sum256(slices.Concat([]byte{1}, roots[len(roots)-1], root))
			roots, root = roots[:len(roots)-1], sum[:]
		}
		roots = append(roots, root)
		size++
	}
	out := fmt.Appendf(nil, "%s\n%d\n", lines[0], size)
	for _, r := range roots {
		out = fmt.Appendf(out, "%s\n", base64.StdEncoding.EncodeToString(r))
	}
	return out
}

// The tree of pruned records lies beside the log, unsigned. One that reaches to the end of the log leaves no record to be looked at.
func TestATreeThatReachesToTheEndOfALogHidesNoChange(t *testing.T) {
	interpreter := python(t)
	dir, keys, vkey, outside := continued(t, 250_000, "")
	now := readLog(t, dir)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(now)), func(name string) bool { _, ok := segment.ParseName(name); return !ok })
	var records [][]byte
	for _, name := range names {
		for line := range bytes.Lines(now[name]) {
			records = append(records, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	start := filepath.Join(dir, evidence.StartFile)
	put(t, start, grownStart(t, now[evidence.StartFile], records))
	for name, change := range map[string]func(){
		"no other change": func() {},
		"another last record": func() {
			last := names[len(names)-1]
			text := bytes.Clone(now[last])
			i := bytes.LastIndex(text, []byte(`"session":"`)) + len(`"session":"`)
			text[i] ^= 1
			put(t, filepath.Join(dir, last), text)
		},
	} {
		change()
		r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys, Outside: []string{outside}, AllowPruned: true})
		if err != nil || r.Verdict != evidence.VerdictTampered {
			t.Errorf("%s: %s %v", name, r.Verdict, err)
		}
		if second := secondVerdict(t, interpreter, dir, vkey, outside); second != evidence.VerdictTampered {
			t.Errorf("%s: the second verifier says %s", name, second)
		}
	}
	put(t, start, now[evidence.StartFile])
	put(t, filepath.Join(dir, names[len(names)-1]), now[names[len(names)-1]])
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys, Outside: []string{outside}, AllowPruned: true})
	if err != nil || r.Verdict != evidence.VerdictOK {
		t.Errorf("as it was: %s %v %v", r.Verdict, r.Fault, err)
	}
}

// Records that only a LogPrune without a signature says were removed are missing.
func TestASecondVerifierBelievesNoForgedLogPrune(t *testing.T) {
	interpreter := python(t)
	dir, vkey, outside := kept(t)
	keys, err := evidence.ParseKeys(vkey)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	slices.Sort(names)
	lines := func(file string) [][]byte {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	}
	put(t, filepath.Join(dir, evidence.StartFile), grownStart(t, []byte("pipeguard.dev/audit-start/v1\n0\n"), lines(names[0])))
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	last := lines(names[1])
	leaf := evidence.Leaf(last[len(last)-1])
	forged := fmt.Appendf(nil, `{"v":1,"seq":8,"type":"log","stage":"LogPrune","log":{"pruned":{"segments":[],"first_seq":1,"last_seq":4,"tree_size":7,"reason":"age"}},"prev":"%s"}`, leaf)
	put(t, names[1], append(bytes.Join(append(last, forged), []byte("\n")), '\n'))
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys, Outside: []string{outside}, AllowPruned: true})
	if err != nil || r.Verdict != evidence.VerdictTampered {
		t.Errorf("%s %v", r.Verdict, err)
	}
	if second := secondVerdict(t, interpreter, dir, vkey, outside); second != evidence.VerdictTampered {
		t.Errorf("the second verifier says %s", second)
	}
}
