package copies

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// words are the runs of letters and digits in a text, once escapes of JSON are undone.
func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		out[w] = true
	}
	return out
}

func TestACopySaysNothingThatIsNotInTheRecord(t *testing.T) {
	t.Setenv("PIPEGUARD_CANARY", "canary0of1the2environment")
	l := bytes.TrimSpace(line(t, denied, func(e *audit.Event) { e.Decision.Rule, e.Outcome.Error = "ruleless", "refused" }))
	var out bytes.Buffer
	w := &written{}
	for _, p := range []Destination{Stdout(&out), EventLog(w, All)} {
		if err := p.Send(t.Context(), []Record{{Line: l}}); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := protojson.Marshal(logRecord(Record{Line: l}, 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != string(l) {
		t.Errorf("stdout: %s", got)
	}
	var plain any
	if err := json.Unmarshal(l, &plain); err != nil {
		t.Fatal(err)
	}
	known := words(string(l))
	// What the formats themselves say.
	for w := range words("Request denied method full pipe program process account namespace pod rule reason error fault audit id record r n " +
		"timeUnixNano observedTimeUnixNano severityNumber SEVERITY NUMBER WARN severityText body stringValue intValue attributes key value eventName pipeguard 1 1767323045000006000") {
		known[w] = true
	}
	for name, text := range map[string]string{"event": w.texts[0], "otlp": string(doc)} {
		for w := range words(text) {
			if !known[w] {
				t.Errorf("%s says %q, which the record does not", name, w)
			}
		}
	}
}
