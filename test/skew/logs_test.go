//go:build !windows

package skew

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

const looking = `acl:
  rules:
    - {name: look, pipes: ["filesystem-*"], operations: [PathExists], callers: [{user: "uid:UID"}]}
`

const kubeletDir = `{"path": "C:\\var\\lib\\kubelet"}`

// segments are the files of a log with their texts.
func (n *node) segments(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(n.path("audit/*.jsonl"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no segments in %s: %v", n.dir, err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// proven is what verify says of a log.
type proven struct {
	Verdict      string
	Records      uint64
	Root         string
	OwnCovered   uint64
	Declared     []string
	IgnoredBytes int64
}

// verify verifies the log by its own checkpoints. No witness has seen it, so that it is incomplete at best.
func (n *node) verify(t *testing.T, by release) proven {
	t.Helper()
	stdout, stderr, code := by.run(t, "pipeguard", "audit", "verify", n.path("audit"), "--keys", n.path("audit-signing.key.pub"), "-o", "json")
	var p proven
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != 3 {
		t.Fatalf("%s verifies: exit code %d, %v\n%s%s", by.name, code, err, stdout, stderr)
	}
	return p
}

// agree asks both releases for the same log, and returns what they say of it.
func (n *node) agree(t *testing.T, one, other release) proven {
	t.Helper()
	p, q := n.verify(t, one), n.verify(t, other)
	if a, b := asJSON(t, p), asJSON(t, q); a != b {
		t.Errorf("%s verifies\n%s\nand %s\n%s", one.name, a, other.name, b)
	}
	for _, command := range [][]string{{"audit", "check"}, {"audit", "show"}, {"audit", "search", "-o", "jsonl"}} {
		args := append(slices.Clone(command), n.path("audit"), "--keys", n.path("audit-signing.key.pub"))
		if a, b := one.mustRun(t, "pipeguard", args...), other.mustRun(t, "pipeguard", args...); a != b {
			t.Errorf("%q says of %s\n%s\nand of %s\n%s", command, one.name, a, other.name, b)
		}
	}
	return p
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A node is upgraded, rolled back, killed and upgraded again: each proxy continues the log of the one before, and nothing is lost.
func TestALogIsContinuedByEitherRelease(t *testing.T) {
	bothWays(t, func(t *testing.T, p pair) {
		n := newNode(t, strings.Replace(looking, "UID", uid(), 1))
		var before map[string][]byte
		var last proven
		for i, r := range []release{p.makes, p.reads, p.makes, p.reads} {
			proxy := n.start(t, r)
			if said, allowed := proxy.call(p.reads, "filesystem-v1", "PathExists", kubeletDir); !allowed {
				t.Fatal(said)
			}
			if said, allowed := proxy.call(p.makes, "disk-v1", "ListDiskIDs", "{}"); allowed || !strings.Contains(said, "no rule names this pipe") {
				t.Fatalf("allowed: %t, %s", allowed, said)
			}
			if i == 2 { // what is not signed yet stays, and the next start takes over what it can prove
				proxy.Kill()
			} else {
				proxy.stop()
			}
			after := n.segments(t)
			for name, text := range before {
				if !bytes.HasPrefix(after[name], text) {
					t.Errorf("%s: %s has lost records", r.name, filepath.Base(name))
				}
			}
			now := n.agree(t, p.makes, p.reads)
			if now.Verdict != "incomplete" || i != 2 && now.OwnCovered != now.Records || now.Records < last.Records+6 {
				t.Errorf("start %d, by %s: %+v, before %+v", i+1, r.name, now, last)
			}
			before, last = maps.Clone(after), now
		}
	})
}

// The records of the webhook are of the same form, and unsigned.
func TestTheRecordsOfAWebhookAreContinuedByEitherRelease(t *testing.T) {
	bothWays(t, func(t *testing.T, p pair) {
		dir := t.TempDir()
		records := filepath.Join(dir, "records")
		for i, r := range []release{p.makes, p.reads, p.makes} {
			probed(t, r, p.reads, dir, records)
			a, b := p.makes.mustRun(t, "pipeguard", "audit", "check", records), p.reads.mustRun(t, "pipeguard", "audit", "check", records)
			if a != b || !strings.Contains(a, "consistent") {
				t.Errorf("start %d: %s says\n%s\nand %s\n%s", i+1, p.makes.name, a, p.reads.name, b)
			}
			shown := p.reads.mustRun(t, "pipeguard", "audit", "search", records, "--where", "type=admission", "-o", "jsonl")
			if got := strings.Count(shown, "\n"); got != i+1 {
				t.Errorf("start %d: %d decisions\n%s", i+1, got, shown)
			}
		}
	})
}

// probed starts a webhook of one release without a cluster, and has another release's ask it.
func probed(t *testing.T, r, asks release, dir, records string) {
	t.Helper()
	ca := filepath.Join(dir, "ca.pem")
	w, err := cluster.StartWebhook(t.Context(), "webhook of "+r.name, r.program("webhook"), nil, "--standalone", "--write-ca", ca, "--audit-log", records)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	if err := w.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, errOut, code, err := harness.Run(exec.CommandContext(t.Context(), asks.program("webhook"), "probe", "--url", "https://"+w.Address+"/validate", "--ca-file", ca))
	if err != nil || code != 0 {
		t.Fatalf("probe: exit code %d, %v\n%s%s", code, err, out, errOut)
	}
	if err := w.Stop(startLimit); err != nil {
		t.Fatal(err)
	}
}
