package access

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// What is asked about each call goes over the bytes once. The same in as many words, and slowly, is what it is held against.

func slowFoldExe(path string) string {
	sep, rest := "/", path
	if !strings.HasPrefix(path, "/") {
		if len(path) < 3 || !isLetter(path[0]) || path[1] != ':' || path[2] != '\\' || strings.Contains(path, "/") {
			return ""
		}
		sep, rest = `\`, path[2:]
	}
	for segment := range strings.SplitSeq(rest[1:], sep) {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, "*?\"<>|\x00") {
			return ""
		}
		if sep == `\` && strings.ContainsRune(segment, ':') {
			return ""
		}
	}
	if sep == "/" {
		return path
	}
	return strings.Map(foldRune, path)
}

// pieces are what paths are made of, and what they must not be made of.
var pieces = []string{
	"C:", "c:", `\`, `\`, `\`, "/", ".", "..", "...", "a", "A", "z", "kubelet", "KUBELET", "kubelet-evil", ":", "*", "?", `"`, "<", ">", "|", "\x00", " ", "~1",
	"\x1f", "\x7f", "\xff", "\u212a", "\u0131", "\u017f", "\u00e9", "\u00c9", "\u0178", "\u00ff", "\u20ac", "\u202e", "com1", "\n", "'",
}

func randomPath(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString([]string{"", `C:\`, `c:\`, "/", `C:\var\lib\`, `\\.\`}[r.IntN(6)])
	for range r.IntN(7) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func TestFoldingByBytesIsFoldingByCharacters(t *testing.T) {
	r, folded := rand.New(rand.NewPCG(1, 5)), 0 //nolint:gosec // the same each time
	for range 200_000 {
		path := randomPath(r)
		got, want := foldExe(path), slowFoldExe(path)
		if got != want {
			t.Fatalf("exe %q is folded to %q, want %q", path, got, want)
		}
		if got != "" {
			folded++
		}
		if quoted, want := string(appendQuoted([]byte("x"), path)), "x"+strconv.Quote(path); quoted != want {
			t.Fatalf("%q is quoted as %s, want %s", path, quoted, want)
		}
	}
	if folded < 1_000 {
		t.Errorf("only %d paths were any", folded)
	}
}

func TestADirectoryHoldsBySegments(t *testing.T) {
	r, held := rand.New(rand.NewPCG(3, 5)), 0 //nolint:gosec // the same each time
	for range 300_000 {
		dir, path := randomPath(r), randomPath(r)
		if r.IntN(2) == 0 {
			path = dir + path[min(len(path), 3):]
		}
		d, err := ParseDirectory(dir)
		if err != nil {
			continue
		}
		p := directoryOf(path)
		slow := len(p.segments) >= len(d.segments) && p.drive == d.drive
		for i := range d.segments {
			slow = slow && safepath.EqualFold(d.segments[i], p.segments[i])
		}
		if got := d.Holds(&p); got != slow {
			t.Fatalf("%q holds %q: %v", dir, path, got)
		}
		if slow {
			held++
		}
	}
	if held < 1_000 {
		t.Errorf("only %d directories held a path", held)
	}
}

func TestWhatIsLookedUpGrowsWithWhatIsWritten(t *testing.T) {
	var pipes []PipePattern
	for i := range 1_000 {
		pipes = append(pipes, PipePattern{Group: FullName + strconv.Itoa(i)})
	}
	var rules []Rule
	for range 20 {
		rules = append(rules, Rule{Pipes: pipes, Callers: []Pattern{{Namespace: "a"}}})
	}
	entries := 0
	for _, b := range NewList(rules, nil, Limits{}).callers {
		entries += len(b.entries)
		for _, list := range b.byPipe {
			entries += len(list)
		}
	}
	if entries > 20*(len(pipes)+1) {
		t.Errorf("%d entries", entries)
	}
}
