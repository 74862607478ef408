package proxy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/deploy/siem/sigma"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/export"
	"github.com/pipeguard/pipeguard/internal/audit/hunt"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/internal/audit/report"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// outputsOf are what readers of a log see of it: the files, and what each tool makes of them.
func outputsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	outputs := map[string]string{}
	source, err := query.Open([]string{dir}, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	var files, stories, findings, inputs strings.Builder
	for _, name := range source.Files() {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files.Write(text)
	}
	outputs["log"] = files.String()
	for _, format := range export.Formats() {
		var b bytes.Buffer
		w, err := export.New(format, &b)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range source.Records() {
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Record(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		outputs["export "+format] = b.String()
	}
	rules, err := hunt.Load(sigma.Rules)
	if err != nil {
		t.Fatal(err)
	}
	hunter := hunt.New(rules)
	tally, err := query.NewTally([]string{"caller", "method", "decision", "code"})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range source.Records() {
		if err != nil {
			t.Fatal(err)
		}
		found, err := hunter.Ask(hunt.ServiceAudit, r.Raw, r.Time)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			fmt.Fprintf(&findings, "%s %s\n", f.Rule.Name, f.Doc)
		}
		tally.Add(&r.Event)
		if r.Type == audit.TypeRequest {
			fmt.Fprintf(&stories, "%s %s %+v\n", query.Caller(&r.Event), query.Decision(&r.Event), r.What)
			in, err := requestpolicy.FromRecord(&r.Event, true)
			fmt.Fprintf(&inputs, "%v %v\n", in, err)
		}
	}
	for _, g := range tally.Groups() {
		fmt.Fprintf(&stories, "%+v\n", g)
	}
	outputs["hunt"], outputs["query"], outputs["policy input of a record"] = findings.String(), stories.String(), inputs.String()
	summary, err := report.Collect(source.Records())
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := summary.Write(&page, report.About{Names: []string{"log"}, Made: time.Now()}, report.Verdict{Status: report.Unverified}); err != nil {
		t.Fatal(err)
	}
	outputs["report"] = page.String()
	return outputs
}

func search(t *testing.T, outputs map[string]string) {
	t.Helper()
	for name, output := range outputs {
		if found := hits(output); len(found) > 0 {
			t.Errorf("%s of %d bytes holds %d spellings: %.500q", name, len(output), len(found), found)
			for _, canary := range canaries {
				for _, text := range spellings(canary) {
					if at := strings.Index(output, text); at >= 0 {
						t.Logf("… %q …", output[max(0, at-200):min(len(output), at+200)])
						return
					}
				}
			}
		}
	}
}

// Each tool shows an error text in words of its own: a canary that is in the log must be found in what each of them makes of it.
func TestTheSearchFindsACanaryThatIsInTheLog(t *testing.T) {
	for _, canary := range canaries {
		dir := t.TempDir()
		file, err := os.Create(filepath.Join(dir, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		w := audit.NewStream(file)
		e := audit.Event{
			Type: audit.TypeRequest, Stage: audit.StagePanic, Time: time.Now(), ID: "x", Who: &audit.Who{Assurance: "none"},
			What:     &audit.What{Pipe: "p", Method: "NewSmbGlobalMapping", FullMethod: "/" + canary, Params: []byte(`{"password":"` + asJSON(canary, true) + `"}`)},
			Decision: &audit.Decision{Effect: audit.EffectAllow, Reason: canary}, Outcome: &audit.Outcome{Result: audit.ResultPanic, Code: "Internal", Error: canary},
		}
		if _, err := w.Append(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		for name, output := range outputsOf(t, file.Name()) {
			if !containsCanary(output, canary) {
				t.Errorf("%q is not found in %s: %q", canary, name, output)
			}
		}
	}
}

func containsCanary(output, canary string) bool {
	for _, text := range spellings(canary) {
		if strings.Contains(output, text) {
			return true
		}
	}
	return false
}
