package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table of exit codes is in the help and in the documentation, word for word.
func TestExitCodesAreToldOnce(t *testing.T) {
	doc, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range exitCodes {
		want = append(want, fmt.Sprintf("| %d | %s |", c.code, c.means))
	}
	table := "| code | meaning |\n|---|---|\n" + strings.Join(want, "\n") + "\n\n"
	if !strings.Contains(string(doc), table) {
		t.Errorf("docs/cli.md lacks the table:\n%s", table)
	}
	if help := execute(t, "", "--help"); help.code != exitYes || !strings.Contains(help.out, exitTable()) {
		t.Errorf("exit code %d, help:\n%s", help.code, help.out)
	}
}

// The author of a file chooses what an error quotes from it. On a line of its own, the quotation would read as the program's own words.
func TestWhatErrorsQuoteOfFilesBeginsNoLine(t *testing.T) {
	const forged = `x\nforged\e[2J`
	for name, c := range map[string]struct{ flag, text string }{
		"a kind":      {"--policies", `{apiVersion: pipeguard.dev/v1alpha1, kind: "FORGED", metadata: {name: p}}`},
		"a version":   {"--policies", `{apiVersion: "FORGED", kind: PipePolicy, metadata: {name: p}}`},
		"an object":   {"--policies", `{apiVersion: pipeguard.dev/v1alpha1, kind: PipePolicy, metadata: {name: "FORGED"}, spec: {pipes: [a]}}`},
		"a parameter": {"--params", `requirement: "FORGED"`},
		"several":     {"--params", `{requirement: "FORGED", hostProcess: "FORGED"}`},
		"a policy":    {"--params", `pipePolicies: {"FORGED": {pipes: [aa-x]}}`},
		"a namespace": {"--params", `allowedNamespaces: {"FORGED": {}}`},
		"an account":  {"--params", `allowedNamespaces: {a: {serviceAccounts: ["FORGED"]}}`},
		"a pipe":      {"--params", `guardedPipes: ["FORGED"]`},
		"a key":       {"--params", `"FORGED": 1`},
	} {
		file := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(c.text, "FORGED", forged)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := execute(t, "", "review", "-f", "testdata/review/ordinary.yaml", c.flag, file)
		if got.code != exitBadInput || !strings.Contains(got.errOut, "forged") {
			t.Errorf("%s: exit code %d, %q", name, got.code, got.errOut)
		}
		if strings.Contains(got.errOut, "\nforged") || strings.Contains(got.errOut, "\x1b") {
			t.Errorf("%s: %q", name, got.errOut)
		}
		if lines := strings.Count(got.errOut, "\n"); name == "several" && lines != 2 {
			t.Errorf("%d lines for two faults: %q", lines, got.errOut)
		}
	}
}
