package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/harness"
)

// recordsOf writes a file of records, one for each decision.
func recordsOf(t *testing.T, decisions ...*audit.Decision) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "records.jsonl")
	var text []byte
	for i, d := range decisions {
		line, err := json.Marshal(audit.Event{V: audit.Version, Seq: uint64(i + 1), Session: "s", Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Who: &audit.Who{}, Decision: d})
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func by(effect audit.Effect, revision string) *audit.Decision {
	return &audit.Decision{Effect: effect, Policy: &audit.Policy{Revision: revision}}
}

func TestRecordsOfAnotherRevisionAreNoticed(t *testing.T) {
	const same, other = "sha256:1", "sha256:2"
	denied := by(audit.EffectDeny, same)
	for name, c := range map[string]struct {
		admission, node string // files
		isNoticed       bool
	}{
		"both of one":                  {recordsOf(t, denied), recordsOf(t, denied), false},
		"an allow of another later":    {recordsOf(t, denied), recordsOf(t, denied, by(audit.EffectAllow, other)), false},
		"the node's of another":        {recordsOf(t, denied), recordsOf(t, by(audit.EffectDeny, other)), true},
		"admission's of another":       {recordsOf(t, by(audit.EffectDeny, other)), recordsOf(t, denied), true},
		"the node has denied nothing":  {recordsOf(t, denied), recordsOf(t, by(audit.EffectAllow, same)), true},
		"the node has decided nothing": {recordsOf(t, denied), recordsOf(t, nil, &audit.Decision{Effect: audit.EffectDeny}), true},
		"there are no records":         {recordsOf(t), recordsOf(t, denied), true},
		"there is no file":             {recordsOf(t, denied), filepath.Join(t.TempDir(), "none"), true},
	} {
		b := &pair{webhook: &webhook{records: c.admission}, proxy: &proxy{records: c.node}, revision: same}
		if err := b.compare(&story{out: io.Discard}); (err != nil) != c.isNoticed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAProxyThatDoesNotSayWhereItAnswersHasNoStatus(t *testing.T) {
	if _, _, err := (&proxy{Process: &harness.Process{}}).status(t.Context()); err == nil {
		t.Error("it has one")
	}
}

func TestARevisionIsShortenedAsMessagesDo(t *testing.T) {
	for in, want := range map[string]string{"": "", "sha256:1": "sha256:1", "sha256:0123456789abcdef": "sha256:0123456789ab"} {
		if got := short(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
