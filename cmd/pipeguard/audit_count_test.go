package main

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestEveryReaderSaysHowManyASummaryStandsFor(t *testing.T) {
	summary := denial("a")
	summary.Stage, summary.Decision.Mode, summary.Outcome.Count = audit.StageSummary, "Enforce", 5000
	file := record(t, summary)
	for name, args := range map[string][]string{
		"show": {"show", file}, "show wide": {"show", file, "--wide"}, "one": {"show", file, "a"}, "search": {"search", file}, "jsonl": {"search", file, "-o", "jsonl"}, "count": {"search", file, "--decision", "deny", "--count"},
		"tail": {"tail", file}, "stats": {"stats", file}, "stats in JSON": {"stats", file, "-o", "json"}, "hunt": {"hunt", file}, "hunt in JSON": {"hunt", file, "-o", "json"},
		"csv": {"export", file, "--format", "csv"}, "ecs": {"export", file, "--format", "ecs"}, "ocsf": {"export", file, "--format", "ocsf"}, "report": {"report", file, "-o", "-"}, "check": {"check", file},
	} {
		if got := evidenceCommand(t, args...); !strings.Contains(got.out, "5000") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
