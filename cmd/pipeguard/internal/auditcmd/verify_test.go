package auditcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
)

// evidenceCommand runs a command of "audit".
func evidenceCommand(t *testing.T, args ...string) result {
	t.Helper()
	return execute(t, "", append([]string{"audit"}, args...)...)
}

// keptLog is a log with its key, kept with the commands alone; outside is its last checkpoint.
func keptLog(t *testing.T) (dir, keys, outside string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	private := filepath.Join(t.TempDir(), "audit.key")
	made := execute(t, "", "keys", "generate", private, "--for", "log", "--name", "node-1")
	if made.Code != 0 || !strings.HasPrefix(made.Out, "pipeguard.dev/audit/node-1+") {
		t.Fatalf("%+v", made)
	}
	key, err := evidence.ReadKey(private)
	if err != nil {
		t.Fatal(err)
	}
	log, err := evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
	if err != nil {
		t.Fatal(err)
	}
	prev := strings.Repeat("A", 43) + "="
	var text []byte
	for seq := 1; seq <= 5; seq++ {
		kind, stage := "request", "ResponseComplete"
		if seq == 1 {
			kind, stage = "log", "LogOpen"
		}
		line := fmt.Appendf(nil, `{"v":1,"seq":%d,"type":"%s","stage":"%s","time":"2026-03-01T12:00:00Z","session":"s","id":"\u001b","prev":"%s"}`, seq, kind, stage, prev)
		leaf := evidence.Leaf(line)
		prev = leaf.String()
		text = append(append(text, line...), '\n')
		log.Append(leaf)
	}
	if err := os.WriteFile(filepath.Join(dir, segment.Name(1)), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir, private + ".pub", evidencetest.Elsewhere(t, dir, key)
}

// onlySegment is the one in a directory.
func onlySegment(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0]
}

func TestAuditVerifyAnswersWithItsExitCode(t *testing.T) {
	dir, keys, outside := keptLog(t)
	segment := onlySegment(t, dir)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"ok":                             {[]string{dir, "--keys", keys, "--checkpoint", outside}, 0, "ok: nothing was changed"},
		"incomplete":                     {[]string{dir, "--keys", keys}, cli.ExitIncomplete, "incomplete: nothing that does not fit"},
		"without keys":                   {[]string{dir}, cli.ExitIncomplete, "no verifier key is given"},
		"a file":                         {[]string{segment, "--keys", keys}, cli.ExitIncomplete, "no checkpoint that was held elsewhere"},
		"another log":                    {[]string{dir, "--keys", keys, "--origin", "x"}, cli.ExitNo, "tampered: the log was changed"},
		"no argument":                    {nil, cli.ExitBadInput, "name a directory"},
		"two directories":                {[]string{dir, dir}, cli.ExitBadInput, "is too many"},
		"a missing directory":            {[]string{dir + "x"}, cli.ExitBadInput, "no such file"},
		"an unknown flag":                {[]string{dir, "--frobnicate"}, cli.ExitBadInput, "unknown flag"},
		"an unknown format":              {[]string{dir, "-o", "yaml"}, cli.ExitBadInput, "must be text or json"},
		"keys that are none":             {[]string{dir, "--keys", outside}, cli.ExitBadInput, "not a verifier key"},
		"a private key for the verifier": {[]string{dir, "--keys", strings.TrimSuffix(keys, ".pub")}, cli.ExitBadInput, "a private key"},
		"a checkpoint that is none":      {[]string{dir, "--keys", keys, "--checkpoint", keys}, cli.ExitBadInput, "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			got := evidenceCommand(t, append([]string{"verify"}, c.args...)...)
			if got.Code != c.code || name != "a checkpoint that is none" && !strings.Contains(got.Out+got.ErrOut, c.want) {
				t.Errorf("exit code %d, want %d; %q %q", got.Code, c.code, got.Out, got.ErrOut)
			}
			if c.code != cli.ExitBadInput && !strings.Contains(got.Out, "Not detected by this:") {
				t.Errorf("says nothing of its limits: %q", got.Out)
			}
		})
	}
	got := evidenceCommand(t, "verify", "-o", "json", dir, "--keys", keys, "--checkpoint", outside)
	var r evidence.Report
	if err := json.Unmarshal([]byte(got.Out), &r); err != nil || r.Verdict != evidence.VerdictOK || r.LastSeq != 5 || len(r.Limits) == 0 {
		t.Errorf("%v: %s", err, got.Out)
	}
	text, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segment, bytes.Replace(text, []byte(`"seq":3`), []byte(`"seq":4`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	got = evidenceCommand(t, "verify", dir, "--keys", keys)
	if got.Code != cli.ExitNo || !strings.Contains(got.Out, "line 3 (record 4): record 3 is due") || got.ErrOut != "" {
		t.Errorf("a changed log: %+v", got)
	}
}

func TestAuditProvePrintsWhatCanBeCheckedWithoutTheLog(t *testing.T) {
	dir, keyFile, outside := keptLog(t)
	keys, err := evidence.ReadKeys(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(6) {
		got := evidenceCommand(t, "prove", dir, "--seq", fmt.Sprint(seq+1), "--keys", keyFile)
		if seq == 5 {
			if got.Code != cli.ExitBadInput || got.Out != "" {
				t.Errorf("a record that is not there: %+v", got)
			}
			break
		}
		p, err := evidence.CheckProof([]byte(got.Out), keys)
		if got.Code != 0 || err != nil || p.Seq != seq+1 || p.Size != 5 {
			t.Errorf("record %d: %+v, %v", seq+1, got, err)
		}
		if bad := strings.Replace(got.Out, "index ", "index 1", 1); bad != got.Out {
			if _, err := evidence.CheckProof([]byte(bad), keys); err == nil {
				t.Errorf("record %d: a proof of another index holds", seq+1)
			}
		}
	}
	for name, args := range map[string][]string{
		"without a record":  {dir, "--keys", keyFile},
		"without keys":      {dir, "--seq", "1"},
		"without a log":     {"--seq", "1", "--keys", keyFile},
		"with other keys":   {dir, "--seq", "1", "--keys", outside},
		"a number below":    {dir, "--seq", "0", "--keys", keyFile},
		"a negative number": {dir, "--seq", "-1", "--keys", keyFile},
	} {
		if got := evidenceCommand(t, append([]string{"prove"}, args...)...); got.Code != cli.ExitBadInput || got.Out != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
