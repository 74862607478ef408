package auditcmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// The records of an edited log can still fit each other in all that they say.
func TestCheckOfABrokenChainIsNeverConsistent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	clitest.Segments(t, dir, intent("a"), end("a", 1), denial("b"))
	file := onlySegment(t, dir)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := evidenceCommand(t, "check", dir); got.Code != cli.ExitYes || !strings.Contains(got.Out, "consistent: no gaps") {
		t.Fatalf("unchanged: %+v", got)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for name, c := range map[string]struct {
		text []byte
		code int
	}{
		"a denial that says otherwise":       {bytes.Replace(whole, []byte("no rule allows it"), []byte("a rule allows it "), 1), cli.ExitNo},
		"an edit and a line that is none":    {bytes.Replace(bytes.Join([][]byte{lines[0], lines[1], []byte("x\n"), lines[2], lines[3], lines[4]}, nil), []byte("azuredisk"), []byte("azurefile"), 1), cli.ExitNo},
		"an edit that repeats a field":       {bytes.Replace(whole, []byte(`"id":"a"`), []byte(`"id":"x","id":"x"`), 1), cli.ExitNo},
		"a record is gone":                   {bytes.Join([][]byte{lines[0], lines[1], lines[2], lines[4]}, nil), cli.ExitIncomplete},
		"a record stands in another's place": {bytes.Join([][]byte{lines[0], lines[1], lines[2], bytes.Replace(lines[4], []byte(`"seq":5`), []byte(`"seq":4`), 1)}, nil), cli.ExitNo},
	} {
		if err := os.WriteFile(file, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, log := range []string{dir, file, "-"} {
			got := execute(t, string(c.text), "audit", "check", log)
			if got.Code != c.code || strings.Contains(got.Out, "\nconsistent") || strings.Contains(got.Out, "tampered: ") != (c.code == cli.ExitNo) {
				t.Errorf("%s, %s: %+v, want %d", name, log, got, c.code)
			}
			var report checkReport
			asJSON := execute(t, string(c.text), "audit", "check", log, "-o", "json")
			if err := json.Unmarshal([]byte(asJSON.Out), &report); err != nil || asJSON.Code != c.code || report.Consistent || report.FaultCount == 0 || len(report.Faults) == 0 {
				t.Errorf("%s, %s in JSON: %v, %+v", name, log, err, asJSON)
			}
		}
	}
}
