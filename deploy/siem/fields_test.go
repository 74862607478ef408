package siem_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// field is what a query of the dashboard calls a field of a record: its place with underscores, below record.
var field = regexp.MustCompile(`record_([a-z_]+)`)

// places are the fields of a record, as who.pod.ns.
func places(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/audit-record.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	var walk func(schema map[string]any, path string)
	walk = func(schema map[string]any, path string) {
		if items, ok := schema["items"].(map[string]any); ok {
			walk(items, path)
		}
		properties, _ := schema["properties"].(map[string]any)
		for name, inner := range properties {
			place := strings.TrimPrefix(path+"."+name, ".")
			out[place] = true
			inner, _ := inner.(map[string]any)
			walk(inner, place)
		}
	}
	walk(schema, "")
	if len(out) < 60 {
		t.Fatalf("%d fields", len(out))
	}
	return out
}

func TestRulesAskForFieldsThatRecordsHave(t *testing.T) {
	files, err := filepath.Glob("sigma/*.yml")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	known, count := places(t), 0
	known["derived.bundle_before"] = true // hunt derives it
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var rule struct {
				Logsource   struct{ Service string }
				Detection   map[string]any
				Correlation struct {
					By []string `yaml:"group-by"`
				}
			}
			if err := in.Decode(&rule); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			asked := rule.Correlation.By
			for _, search := range rule.Detection {
				fields, _ := search.(map[string]any)
				for field, value := range fields {
					field, modifiers, _ := strings.Cut(field, "|")
					asked = append(asked, field)
					if strings.Contains(modifiers, "fieldref") {
						asked = append(asked, fmt.Sprint(value))
					}
				}
			}
			for _, field := range asked {
				if count++; !known[field] && rule.Logsource.Service != "proxy" {
					t.Errorf("%s: no record has %s", name, field)
				}
			}
		}
	}
	if count < 25 {
		t.Errorf("%d fields", count)
	}
}

// What the page of queries names, in the spelling of each language.
func TestQueriesOfThePageAskForFieldsThatRecordsHave(t *testing.T) {
	text, err := os.ReadFile("../../docs/siem.md")
	if err != nil {
		t.Fatal(err)
	}
	known, count := places(t), map[string]int{}
	flat := map[string]bool{}
	for place := range known {
		flat[strings.ReplaceAll(place, ".", "_")] = true
	}
	_, queries, _ := strings.Cut(string(text), "## Queries")
	for _, block := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(queries, -1) {
		switch block[1] {
		case "logql":
			for _, m := range field.FindAllStringSubmatch(block[2], -1) {
				if count["logql"]++; !flat[m[1]] {
					t.Errorf("LogQL: no record has %s", m[1])
				}
			}
		case "kusto":
			for _, m := range regexp.MustCompile(`Record\.([a-z_.]+)`).FindAllStringSubmatch(block[2], -1) {
				if count["kusto"]++; !known[m[1]] {
					t.Errorf("KQL: no record has %s", m[1])
				}
			}
		case "spl":
			for _, m := range regexp.MustCompile(`\b(?:type|stage|id|intent_seq|(?:who|what|decision|outcome|corr|where|log)\.[a-z_.]+)\b`).FindAllString(block[2], -1) {
				if count["spl"]++; !known[m] {
					t.Errorf("SPL: no record has %s", m)
				}
			}
		}
	}
	if count["logql"] < 10 || count["kusto"] < 15 || count["spl"] < 15 {
		t.Errorf("fields in queries: %v", count)
	}
}

func TestTheDashboardAsksForFieldsThatExist(t *testing.T) {
	text, err := os.ReadFile("grafana/audit.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID    string `json:"uid"`
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	names, ids := map[string]bool{}, map[int]bool{}
	for place := range places(t) {
		names[strings.ReplaceAll(place, ".", "_")] = true
	}
	for _, p := range board.Panels {
		if ids[p.ID] || len(p.Targets) != 1 {
			t.Errorf("%s: its id is taken, or it has no query", p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") || !strings.Contains(target.Expr, `{job="pipeguard-audit"`) {
				t.Errorf("%s: %s", p.Title, target.Expr)
			}
			for _, m := range field.FindAllStringSubmatch(target.Expr, -1) {
				if !names[m[1]] {
					t.Errorf("%s: no record has %s", p.Title, m[1])
				}
			}
		}
	}
	if board.UID == "" || len(board.Panels) < 10 {
		t.Errorf("%d panels", len(board.Panels))
	}
}
