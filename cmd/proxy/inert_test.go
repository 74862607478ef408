package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/proxy/watch"
)

// forgery would be lines of its own, and act on a terminal; in YAML between double quotes.
const (
	forgery     = "x\n\nmode volume-v1 Enforce\nforged\x1b[2J\u202e\u009b"
	yamlForgery = `x\n\nmode volume-v1 Enforce\nforged\e[2J\u202e\u009b`
)

// isOneLineEach finds lines that a value began, and runes that act.
func isOneLineEach(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "mode volume-v1 Enforce") || strings.HasPrefix(line, "forged") {
			t.Errorf("a value forged %q", line)
		}
		for _, r := range strings.TrimSuffix(line, "\n") {
			if !inert.IsInert(r) {
				t.Errorf("%U in %q", r, line)
			}
		}
	}
}

func TestCheckConfigPrintsNoTextOfAFileAsItIs(t *testing.T) {
	elsewhere := 0 // modules of another system are left out
	if runtime.GOOS == "windows" {
		elsewhere = 1 // they are tried, and are not there
	}
	for name, tt := range map[string]struct {
		text string
		code int
	}{
		"the name of a rule": {`acl: {rules: [{name: "X", pipes: ["disk-*"], operations: ["*"], callers: [{user: S-1-5-18, exe: 'C:\a.exe'}]}]}`, 0},
		"a program":          {`acl: {rules: [{name: a, pipes: ["disk-*"], operations: ["*"], callers: [{user: S-1-5-18, exe: "C:\\aX\\b.exe"}]}]}`, 0},
		"places":             {`containers: {endpoint: "unix:///X", kubelet: {url: "https://127.0.0.1:10250", caFile: "C:\\X", tokenFile: "C:\\X"}}`, 0},
		"addresses":          {`containers: {endpoint: "X", kubelet: {url: "X", caFile: "X", tokenFile: "X"}}`, 1},
		"modules anywhere":   {`requestPolicy: {modules: "X"}`, 1},
		"modules elsewhere":  {`requestPolicy: {modules: "C:\\X"}`, elsewhere},
		"modules":            {`requestPolicy: {modules: "/X"}`, 1},
		"an unknown key":     {`"X": 1`, 1},
		"a key":              {`tokens: {verify: {}, pipes: {"X": "X"}}`, 1},
		"a key of no value":  {`tokens: {pipes: {"X": }}`, 1},
		"callers":            {`acl: {rules: [{name: a, pipes: ["disk-*"], operations: ["*"], callers: [{user: "X", namespace: "X", image: "X"}]}]}`, 1},
	} {
		code, out, errOut := checkConfig(t, strings.ReplaceAll(tt.text, "X", yamlForgery)+"\n")
		if code != tt.code || !strings.Contains(out+errOut, "mode") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errOut)
		}
		isOneLineEach(t, out)
		isOneLineEach(t, errOut)
	}
}

func TestCheckConfigHasALineForEachFault(t *testing.T) {
	for text, want := range map[string]int{
		"a: 1\nb: 2\nc: 3\n": 3,
		"acl: {rules: [{name: a, pipes: ['disk-*'], operations: ['*'], callers: [{user: x, namespace: X, exe: y}]}]}\n": 3,
	} {
		if code, _, errOut := checkConfig(t, text); code != 1 || strings.Count(errOut, "\n") != want {
			t.Errorf("exit code %d: %s", code, errOut)
		}
	}
}

func TestOtherCommandsPrintOneLineEach(t *testing.T) {
	s := serviceStatus{
		Service: forgery, Program: forgery, Command: forgery, Version: forgery, SIDType: forgery, Unguarded: []watch.Foreign{{Pipe: "a", PID: 3, Program: forgery}},
		Mappings: []mappingStatus{{Share: forgery, Maker: forgery}},
	}
	for _, installed := range []bool{false, true} {
		var out bytes.Buffer
		s.Installed = installed
		if err := s.print(&out, "table"); err != nil {
			t.Fatal(err)
		}
		isOneLineEach(t, out.String())
	}
	var doc bytes.Buffer
	var back serviceStatus
	if err := errors.Join(s.print(&doc, "json"), json.Unmarshal(doc.Bytes(), &back)); err != nil || back.Program != forgery {
		t.Errorf("%q, %v", back.Program, err)
	}
	isOneLineEach(t, doc.String())
	var out bytes.Buffer
	if err := printAnswers(&out, []answer{{Group: "disk", Operation: "x", Detail: forgery}}, false); err != nil {
		t.Fatal(err)
	}
	sayTo(&out)("error: %v of %s", errors.Join(errors.New(forgery), errors.New("b")), forgery)
	fail(&out, "status", errors.New(forgery))
	isOneLineEach(t, out.String())
	if !strings.Contains(out.String(), "<U+009B>; b of x<U+000A>") {
		t.Errorf("got %q", out.String())
	}
}

// A print of a subcommand that forgets it reaches no terminal.
func TestNoCommandActsOnATerminal(t *testing.T) {
	subcommands["forgets"] = func(_ context.Context, _ []string, stdout, stderr io.Writer) int {
		_, _ = fmt.Fprintln(stdout, "a\x1b[2J\u202e")
		_, _ = fmt.Fprintln(stderr, "b\x1b[2J\u202e")
		return 0
	}
	defer delete(subcommands, "forgets")
	var stdout, stderr bytes.Buffer
	run(t.Context(), []string{"forgets"}, &stdout, &stderr)
	run(t.Context(), []string{forgery}, &stdout, &stderr)
	isOneLineEach(t, stdout.String())
	isOneLineEach(t, stderr.String())
}
