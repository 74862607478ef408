package sigma_test

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/deploy/siem/sigma"
	"github.com/pipeguard/pipeguard/internal/audit/hunt"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// found counts what the rules find in a sample, by the files of the rules. A sample is of one service.
func found(t *testing.T, sample string) map[string]int {
	t.Helper()
	rules, err := hunt.Load(sigma.Rules)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	h, count := hunt.New(rules), map[string]int{}
	ask := func(service string, doc []byte, at time.Time) {
		findings, err := h.Ask(service, doc, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			count[f.Rule.File]++
		}
	}
	if strings.Contains(filepath.Base(sample), "unguarded") {
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			ask(hunt.ServiceProxy, lines.Bytes(), time.Time{})
		}
		return count
	}
	records, err := query.Open([]string{sample}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range records.Records() {
		if err != nil {
			t.Fatalf("a sample is made of records: %v", err)
		}
		ask(hunt.ServiceAudit, r.Raw, r.Time)
	}
	return count
}

func TestEachRuleFindsItsSampleAndLeavesTheOther(t *testing.T) {
	files, err := filepath.Glob("*.yml")
	if err != nil || len(files) < 13 {
		t.Fatalf("%d rules, %v", len(files), err)
	}
	// How often a rule fires on its positive sample: once for each call, and once for each burst.
	want := map[string]int{"denials_burst.yml": 1, "host_process.yml": 2, "log_fault.yml": 3, "request_policy.yml": 4, "token_state.yml": 2}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			name := strings.TrimSuffix(file, ".yml")
			if got := found(t, filepath.Join("samples", name+".positive.jsonl"))[file]; got != max(1, want[file]) {
				t.Errorf("%d findings in the positive sample, want %d", got, max(1, want[file]))
			}
			if got := found(t, filepath.Join("samples", name+".negative.jsonl"))[file]; got != 0 {
				t.Errorf("%d findings in the negative sample", got)
			}
		})
	}
	if samples, err := filepath.Glob("samples/*"); err != nil || len(samples) != 2*len(files) {
		t.Errorf("%d samples of %d rules, %v", len(samples), len(files), err)
	}
}
