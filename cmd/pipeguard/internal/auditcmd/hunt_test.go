package auditcmd

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/deploy/siem/sigma"
	"github.com/pipeguard/pipeguard/internal/audit/hunt"
)

// hunted are the ids of the rules that the command finds something by in a sample.
func hunted(t *testing.T, sample string) (ids map[string]int, code int) {
	t.Helper()
	args := []string{"audit", "hunt", sample, "-o", "json"}
	if strings.Contains(sample, "unguarded_pipe") { // it is of the diagnostic log
		args = []string{"audit", "hunt", "../../../../deploy/siem/sigma/samples/panic.negative.jsonl", "--proxy-log", sample, "-o", "json"}
	}
	got := execute(t, "", args...)
	ids = map[string]int{}
	for line := range strings.Lines(got.Out) {
		var finding findingReport
		if err := json.Unmarshal([]byte(line), &finding); err != nil {
			t.Fatalf("%s: %q: %v", sample, line, err)
		}
		ids[finding.ID]++
	}
	if got.ErrOut != "not verified: no keys given\n" {
		t.Errorf("%s: %s", sample, got.ErrOut)
	}
	return ids, got.Code
}

func TestAuditHuntFindsTheSampleOfEachRuleAndLeavesTheOther(t *testing.T) {
	rules, err := hunt.Load(sigma.Rules)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, rule := range rules {
		if seen[rule.File] = true; rule.Name != "" { // a part of another
			continue
		}
		t.Run(rule.Title, func(t *testing.T) {
			sample := filepath.Join("../../../../deploy/siem/sigma/samples", strings.TrimSuffix(rule.File, ".yml"))
			if ids, code := hunted(t, sample+".positive.jsonl"); ids[rule.ID] == 0 || code != cli.ExitNo {
				t.Errorf("found by %v, exit code %d", ids, code)
			}
			if ids, _ := hunted(t, sample+".negative.jsonl"); ids[rule.ID] != 0 {
				t.Errorf("the negative sample is found by %v", ids)
			}
		})
	}
	if len(seen) < 13 {
		t.Errorf("%d files of rules", len(seen))
	}
}
