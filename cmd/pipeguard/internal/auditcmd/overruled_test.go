package auditcmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
)

// Records that a segment declares torn are named by every command that reads the log, whether or not it has keys. With keys, the exit code says whether that is the
// log's own word.
func TestWholeRecordsThatAreDeclaredTornAreNamedWithKeysToo(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(t *testing.T, dir, last string, lines [][]byte) // of a log that was closed
		told    string                                               // by the next start
		what    string
		isOwn   bool
		verdict evidence.Verdict
		code    int
	}{
		"by a segment that was added after a kill": {hideAfterKill, "says that the log ends before record", "3 whole records that continue record 3 of ", false, evidence.VerdictIncomplete, cli.ExitIncomplete},
		"behind the end of a log that was closed":  {addBehindEnd, "stand behind the record that closed", "2 whole records that continue record 7 of ", true, evidence.VerdictOK, cli.ExitYes},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "log")
			key, err := evidence.NewKey(evidence.Origin("node-1"))
			if err != nil {
				t.Fatal(err)
			}
			keys := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(keys, []byte(key.LogKey()+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			calls := 0
			call := func() *audit.Event {
				calls++
				return &audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: fmt.Sprint(calls), Outcome: &audit.Outcome{Result: audit.ResultIdle}}
			}
			session(t, dir, key, 0, "", call(), call(), call(), call(), call())
			last := onlySegment(t, dir)
			lines := slices.Collect(bytes.Lines([]byte(fileText(t, last))))
			if len(lines) != 7 {
				t.Fatalf("%d records", len(lines))
			}
			c.change(t, dir, last, lines)
			session(t, dir, key, 0, c.told, call())
			outside := evidencetest.Elsewhere(t, dir, key)
			with := []string{"--keys", keys, "--checkpoint", outside}
			for reader, args := range unverifying(dir) {
				if reader == "one" {
					args[2] = "2"
				}
				for _, given := range [][]string{nil, with} {
					want := cli.ExitIncomplete
					if given != nil && c.isOwn {
						want = cli.ExitYes
					}
					got := evidenceCommand(t, append(slices.Clone(args), given...)...)
					if isFinding := reader == "hunt" && got.Code == cli.ExitNo && want == cli.ExitYes; got.Code != want && !isFinding {
						t.Errorf("%s, keys %t: exit code %d, want %d: %s%s", reader, given != nil, got.Code, want, got.Out, got.ErrOut)
					}
					if !strings.Contains(got.ErrOut+got.Out, c.what) {
						t.Errorf("%s, keys %t, does not say %q: %s", reader, given != nil, c.what, got.ErrOut)
					}
				}
			}
			got := evidenceCommand(t, append([]string{"verify", dir}, with...)...)
			if got.Code != c.code || !strings.HasPrefix(got.Out, string(c.verdict)+": ") || !strings.Contains(got.Out, c.what) {
				t.Errorf("verify: exit code %d\n%s", got.Code, got.Out)
			}
			got = evidenceCommand(t, append([]string{"verify", dir, "-o", "json"}, with...)...)
			var report struct {
				Overruled []evidence.Overruled `json:"overruled"`
			}
			if err := json.Unmarshal([]byte(got.Out), &report); err != nil || len(report.Overruled) != 1 || report.Overruled[0].Unsigned == c.isOwn || report.Overruled[0].File != last {
				t.Errorf("verify in JSON: %v, %+v", err, report.Overruled)
			}
		})
	}
}

// hideAfterKill makes the log one that was killed after its first record was signed, and has an added segment hide the last three records.
func hideAfterKill(t *testing.T, dir, last string, lines [][]byte) {
	t.Helper()
	own := filepath.Join(dir, evidence.CheckpointFile)
	for n, err := range evidence.Notes(strings.NewReader(fileText(t, own))) {
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(own, append(n.Raw, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		break
	}
	if signed, err := evidence.LastSigned(dir, nil, nil); err != nil || signed.Size != 1 {
		t.Fatalf("%d records are signed: %v", signed.Size, err)
	}
	shown, hidden := bytes.Join(lines[:3], nil), bytes.Join(lines[3:6], nil) // without LogClose
	if err := os.WriteFile(last, slices.Concat(shown, hidden), 0o600); err != nil {
		t.Fatal(err)
	}
	leaf, planted := segment.Leaf(bytes.TrimSuffix(lines[2], []byte("\n"))), segment.Name(4)
	opening := fmt.Appendf(nil, `{"v":1,"seq":4,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{"previous_session":"s","previous_seq":3,"torn_bytes":%d,`+
		`"previous_segment":%q,"previous_bytes":%d,"previous_torn_hash":"%x","cause":"failure","segment":%q},"prev":"%s"}`+"\n",
		len(hidden), filepath.Base(last), len(shown), sha256.Sum256(hidden), planted, base64.StdEncoding.EncodeToString(leaf[:]))
	if err := os.WriteFile(filepath.Join(dir, planted), opening, 0o600); err != nil {
		t.Fatal(err)
	}
}

// addBehindEnd adds two records behind the one that closed the log.
func addBehindEnd(t *testing.T, _, last string, lines [][]byte) {
	t.Helper()
	text := bytes.Join(lines, nil)
	line := bytes.TrimSuffix(lines[6], []byte("\n"))
	for seq := 8; seq <= 9; seq++ {
		leaf := segment.Leaf(line)
		line = fmt.Appendf(nil, `{"v":1,"seq":%d,"type":"connection","stage":"ConnectionClosed","time":"2026-03-02T12:00:00Z","session":"s","id":"c","outcome":{"result":"idle"},"prev":"%s"}`,
			seq, base64.StdEncoding.EncodeToString(leaf[:]))
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(last, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
