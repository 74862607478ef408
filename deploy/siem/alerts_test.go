package siem_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metric is the name of a metric in an expression.
var metric = regexp.MustCompile(`pipeguard_[a-z_]+`)

// text is a string of a Go file.
var text = regexp.MustCompile(`"([a-z_]+)"`)

// programs are the directories whose metrics alerts may ask for.
var programs = []string{"cmd/proxy", "internal/proxy", "internal/proxy/watch", "internal/bundle", "internal/audit/copies", "internal/controller/witness"}

// hasMetric says whether a file has the name of a metric, whole or as a beginning that others share and the rest.
func hasMetric(source, name string) bool {
	texts := map[string]bool{}
	for _, m := range text.FindAllStringSubmatch(source, -1) {
		texts[m[1]] = true
	}
	if texts[name] {
		return true
	}
	for beginning := range texts {
		rest, ok := strings.CutPrefix(name, beginning)
		if ok && strings.HasPrefix(beginning, "pipeguard_") && (texts[rest] || texts["_total"] && texts[strings.TrimSuffix(rest, "_total")]) {
			return true
		}
	}
	return false
}

func TestAlertsAskForMetricsThatThereAre(t *testing.T) {
	var sources []string
	for _, dir := range programs {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				sources = append(sources, string(source))
			}
		}
	}
	groups, _ := at(t, config(t, "prometheus/alerts.yaml"), "groups").([]any)
	seen := map[any]bool{}
	for i := range groups {
		rules, _ := at(t, groups[i], "rules").([]any)
		for _, rule := range rules {
			alert, expr := at(t, rule, "alert"), fmt.Sprint(at(t, rule, "expr"))
			names := metric.FindAllString(expr, -1)
			if len(names) == 0 || seen[alert] || strings.Count(expr, "(") != strings.Count(expr, ")") {
				t.Errorf("%v asks for nothing, is there twice or is malformed: %s", alert, expr)
			}
			seen[alert] = true
			for _, name := range names {
				if !slices.ContainsFunc(sources, func(source string) bool { return hasMetric(source, name) }) {
					t.Errorf("%v: no program has %s", alert, name)
				}
			}
			for _, part := range []any{at(t, rule, "labels", "severity"), at(t, rule, "annotations", "summary"), at(t, rule, "annotations", "description")} {
				if part == "" {
					t.Errorf("%v is empty", alert)
				}
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("%d alerts", len(seen))
	}
	for _, wanted := range []string{
		"pipeguard_audit_up", "pipeguard_audit_refused_total", "pipeguard_audit_lost_total", "pipeguard_audit_poisoned_total", "pipeguard_audit_bytes", "pipeguard_audit_retention_up",
		"pipeguard_audit_unreconciled", "pipeguard_audit_copies_dropped_total",
	} {
		if alerts, err := os.ReadFile("prometheus/alerts.yaml"); err != nil || !strings.Contains(string(alerts), wanted) {
			t.Errorf("nobody is alerted by %s, %v", wanted, err)
		}
	}
	for _, name := range []string{"pipeguard_audit_ups", "pipeguard_audit_up_total_total", "pipeguard_no_such_total"} {
		if slices.ContainsFunc(sources, func(source string) bool { return hasMetric(source, name) }) {
			t.Errorf("%s is found", name)
		}
	}
}
