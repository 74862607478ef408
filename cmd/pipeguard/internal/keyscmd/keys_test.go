package keyscmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func TestKeysAreMadeOnceAndForTheirOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	run := func(want int, args ...string) string {
		t.Helper()
		got := execute(t, "", append([]string{"keys"}, args...)...)
		if got.Code != want {
			t.Fatalf("%q: %+v, want %d", args, got, want)
		}
		return got.Out
	}
	run(0, "generate", file("key"), "--for", "bundle")
	info, err := os.Stat(file("key"))
	if err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	before, err := os.ReadFile(file("key"))
	if err != nil {
		t.Fatal(err)
	}
	run(2, "generate", file("key"), "--for", "bundle")
	clitest.Write(t, dir, "other.pub", "")
	run(2, "generate", file("other"), "--for", "bundle")
	if _, err := os.Stat(file("other")); err == nil {
		t.Error("half a pair of keys is left")
	}
	if now, err := os.ReadFile(file("key")); err != nil || !bytes.Equal(before, now) {
		t.Error("a key was overwritten")
	}
	shown := run(0, "show", file("key"), file("key.pub"))
	lines := strings.Split(strings.TrimSpace(shown), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "bundle   private  es256:") || lines[1] != strings.Replace(lines[0], "private", "public ", 1)+".pub" || strings.Contains(shown, "BEGIN") {
		t.Errorf("shown:\n%s", shown)
	}
	run(2, "show", clitest.Write(t, dir, "policies.yaml", "kind: PipePolicy\n"))
	run(2, "show", file("missing"))
	run(2, "show")
	var report struct{ Keys []keyReport }
	if err := json.Unmarshal([]byte(run(0, "show", "-o", "json", file("key"))), &report); err != nil || len(report.Keys) != 1 || report.Keys[0].Kind != "private" {
		t.Errorf("%+v, %v", report, err)
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
		if got.Code != 0 {
			t.Fatalf("%q: %+v", args, got)
		}
		shown.WriteString(got.Out + got.ErrOut)
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
		"a name with a scheme":        {"generate", filepath.Join(dir, "3"), "--for", "witness", "--name", "http://w"},
		"a purpose twice":             {"generate", filepath.Join(dir, "3"), "--for", "witness", "--for", "log", "--name", "w"},
		"a name that is empty":        {"generate", filepath.Join(dir, "3"), "--for", "bundle", "--name", ""},
		"a name with a plus":          {"generate", filepath.Join(dir, "3"), "--for", "log", "--name", "a+b"},
		"old keys that are private":   {"generate", filepath.Join(dir, "3"), "--for", "log", "--name", "n", "--old", first},
		"old keys of another log":     {"generate", filepath.Join(dir, "3"), "--for", "log", "--name", "node-2", "--old", first + ".pub"},
		"old keys of no witness":      {"generate", filepath.Join(dir, "3"), "--for", "witness", "--name", "node-1", "--old", first + ".pub"},
		"without a purpose":           {"generate", filepath.Join(dir, "3"), "--name", "n"},
		"another purpose":             {"generate", filepath.Join(dir, "3"), "--for", "pod", "--name", "n"},
		"a bundle's key with a name":  {"generate", filepath.Join(dir, "3"), "--for", "bundle", "--name", "n"},
		"show of nothing":             {"show"},
		"show of a directory":         {"show", dir},
		"show of a file of no keys":   {"show", "keys.go"},
		"an unknown flag of generate": {"generate", "--frobnicate"},
	} {
		got := execute(t, "", append([]string{"keys"}, args...)...)
		if got.Code != cli.ExitBadInput {
			t.Errorf("%s: %+v", name, got)
		}
		shown.WriteString(got.Out + got.ErrOut)
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
