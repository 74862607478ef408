package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if made.code != 0 || !strings.HasPrefix(made.out, "pipeguard.dev/audit/node-1+") {
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
		"incomplete":                     {[]string{dir, "--keys", keys}, exitIncomplete, "incomplete: nothing that does not fit"},
		"without keys":                   {[]string{dir}, exitIncomplete, "no verifier key is given"},
		"a file":                         {[]string{segment, "--keys", keys}, exitIncomplete, "no checkpoint that was held elsewhere"},
		"another log":                    {[]string{dir, "--keys", keys, "--origin", "x"}, exitNo, "tampered: the log was changed"},
		"no argument":                    {nil, exitBadInput, "name a directory"},
		"two directories":                {[]string{dir, dir}, exitBadInput, "is too many"},
		"a missing directory":            {[]string{dir + "x"}, exitBadInput, "no such file"},
		"an unknown flag":                {[]string{dir, "--frobnicate"}, exitBadInput, "unknown flag"},
		"an unknown format":              {[]string{dir, "-o", "yaml"}, exitBadInput, "must be text or json"},
		"keys that are none":             {[]string{dir, "--keys", outside}, exitBadInput, "not a verifier key"},
		"a private key for the verifier": {[]string{dir, "--keys", strings.TrimSuffix(keys, ".pub")}, exitBadInput, "a private key"},
		"a checkpoint that is none":      {[]string{dir, "--keys", keys, "--checkpoint", keys}, exitBadInput, "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			got := evidenceCommand(t, append([]string{"verify"}, c.args...)...)
			if got.code != c.code || name != "a checkpoint that is none" && !strings.Contains(got.out+got.errOut, c.want) {
				t.Errorf("exit code %d, want %d; %q %q", got.code, c.code, got.out, got.errOut)
			}
			if c.code != exitBadInput && !strings.Contains(got.out, "Not detected by this:") {
				t.Errorf("says nothing of its limits: %q", got.out)
			}
		})
	}
	got := evidenceCommand(t, "verify", "-o", "json", dir, "--keys", keys, "--checkpoint", outside)
	var r evidence.Report
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || r.Verdict != evidence.VerdictOK || r.LastSeq != 5 || len(r.Limits) == 0 {
		t.Errorf("%v: %s", err, got.out)
	}
	text, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segment, bytes.Replace(text, []byte(`"seq":3`), []byte(`"seq":4`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	got = evidenceCommand(t, "verify", dir, "--keys", keys)
	if got.code != exitNo || !strings.Contains(got.out, "line 3 (record 4): record 3 is due") || got.errOut != "" {
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
			if got.code != exitBadInput || got.out != "" {
				t.Errorf("a record that is not there: %+v", got)
			}
			break
		}
		p, err := evidence.CheckProof([]byte(got.out), keys)
		if got.code != 0 || err != nil || p.Seq != seq+1 || p.Size != 5 {
			t.Errorf("record %d: %+v, %v", seq+1, got, err)
		}
		if bad := strings.Replace(got.out, "index ", "index 1", 1); bad != got.out {
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
		if got := evidenceCommand(t, append([]string{"prove"}, args...)...); got.code != exitBadInput || got.out != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestKeysNeverPrintThePrivateHalf(t *testing.T) {
	dir := t.TempDir()
	first, second, witness := filepath.Join(dir, "1"), filepath.Join(dir, "2"), filepath.Join(dir, "w")
	var shown strings.Builder
	for _, args := range [][]string{
		{"keys", "generate", first, "--for", "log", "--name", "node-1"},
		{"keys", "generate", second, "--for", "log", "--name", "node-1", "--old", first + ".pub"},
		{"keys", "generate", witness, "--for", "witness", "--name", "example.com/w"},
		{"keys", "show", first}, {"keys", "show", second + ".pub"}, {"keys", "show", witness, "-o", "json"},
	} {
		got := execute(t, "", args...)
		if got.code != 0 {
			t.Fatalf("%q: %+v", args, got)
		}
		shown.WriteString(got.out + got.errOut)
	}
	for _, line := range []string{"log      private  ", "witness  private  ", "log      public   ", `"for": "witness"`, `"name": "example.com/w"`} {
		if !strings.Contains(shown.String(), line) {
			t.Errorf("no %q in:\n%s", line, shown.String())
		}
	}
	keys, err := evidence.ReadKeys(second + ".pub")
	if err != nil || len(keys.Describe()) != 2 {
		t.Errorf("old and new key: %v, %v", keys.Describe(), err)
	}
	for name, args := range map[string][]string{
		"over a key":                  {"generate", first, "--for", "log", "--name", "n"},
		"without a name":              {"generate", filepath.Join(dir, "3"), "--for", "log"},
		"a name with a blank":         {"generate", filepath.Join(dir, "3"), "--for", "log", "--name", "a b"},
		"a name with a plus":          {"generate", filepath.Join(dir, "3"), "--for", "log", "--name", "a+b"},
		"old keys that are private":   {"generate", filepath.Join(dir, "3"), "--for", "log", "--name", "n", "--old", first},
		"old keys of another log":     {"generate", filepath.Join(dir, "3"), "--for", "log", "--name", "node-2", "--old", first + ".pub"},
		"old keys of no witness":      {"generate", filepath.Join(dir, "3"), "--for", "witness", "--name", "node-1", "--old", first + ".pub"},
		"without a purpose":           {"generate", filepath.Join(dir, "3"), "--name", "n"},
		"another purpose":             {"generate", filepath.Join(dir, "3"), "--for", "pod", "--name", "n"},
		"a bundle's key with a name":  {"generate", filepath.Join(dir, "3"), "--for", "bundle", "--name", "n"},
		"show of nothing":             {"show"},
		"show of a directory":         {"show", dir},
		"show of a file of no keys":   {"show", "main.go"},
		"an unknown flag of generate": {"generate", "--frobnicate"},
	} {
		got := execute(t, "", append([]string{"keys"}, args...)...)
		if got.code != exitBadInput {
			t.Errorf("%s: %+v", name, got)
		}
		shown.WriteString(got.out + got.errOut)
	}
	for _, file := range []string{first, second, witness} {
		secret, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.SplitN(strings.TrimSpace(string(secret)), "+", 5)
		if strings.Contains(shown.String(), parts[len(parts)-1][:20]) {
			t.Errorf("the private half of %s was printed", file)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "3")); err == nil {
		t.Error("a key was left behind")
	}
}
