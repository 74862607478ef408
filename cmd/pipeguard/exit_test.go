package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

func TestTheHelpHasTheExitCodes(t *testing.T) {
	if help := execute(t, "", "--help"); help.Code != cli.ExitYes || !strings.Contains(help.Out, cli.ExitTable()) {
		t.Errorf("exit code %d, help:\n%s", help.Code, help.Out)
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
		got := execute(t, "", "review", "-f", "internal/reviewcmd/testdata/review/ordinary.yaml", c.flag, file)
		if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "forged") {
			t.Errorf("%s: exit code %d, %q", name, got.Code, got.ErrOut)
		}
		if strings.Contains(got.ErrOut, "\nforged") || strings.Contains(got.ErrOut, "\x1b") {
			t.Errorf("%s: %q", name, got.ErrOut)
		}
		if lines := strings.Count(got.ErrOut, "\n"); name == "several" && lines != 2 {
			t.Errorf("%d lines for two faults: %q", lines, got.ErrOut)
		}
	}
}
