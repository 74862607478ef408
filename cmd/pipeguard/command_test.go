package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func runCommand(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return cli.Run(ctx, NewRoot(), args, in, out, errOut)
}

func execute(t *testing.T, stdin string, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(stdin, func(in io.Reader, out, errOut io.Writer) int { return runCommand(t.Context(), args, in, out, errOut) })
}

func TestBadCommandLinesAreNamedWithExitCode2(t *testing.T) {
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command":                          {nil, "name a command"},
		"an unknown command":                  {[]string{"frobnicate"}, `unknown command "frobnicate"`},
		"an unknown flag":                     {[]string{"canonical", "--frobnicate", "x"}, "unknown flag: --frobnicate"},
		"a control character in a command":    {[]string{"a\x1b[2J"}, `unknown command`},
		"a group without its command":         {[]string{"audit"}, "name a command"},
		"a group with an unknown command":     {[]string{"policy", "frobnicate"}, `unknown command "frobnicate"`},
		"canonical without a path":            {[]string{"canonical"}, "name at least one path"},
		"canonical with paths and stdin":      {[]string{"canonical", "--stdin", "x"}, "either from --stdin or from the command line"},
		"canonical with -0 alone":             {[]string{"canonical", "-0", "x"}, "--null needs --stdin"},
		"canonical with an empty pattern":     {[]string{"canonical", "--pattern", "", "x"}, "pattern"},
		"canonical with a star in the middle": {[]string{"canonical", "--pattern", "a*b", "x"}, "a*b"},
		"review without a file":               {[]string{"review"}, "name a file, or - for standard input"},
		"review in an unknown format":         {[]string{"review", "-f", "x", "-o", "yaml"}, "must be text or json"},
		"review that ignores Pods":            {[]string{"review", "-f", "x", "--ignore", "Pod"}, "--ignore Pod: this kind can carry"},
		"review that ignores Deployments":     {[]string{"review", "-f", "x", "--ignore", "Deployment.apps"}, "can carry a guarded pipe"},
		"review with missing parameters":      {[]string{"review", "-f", "x", "--params", "missing.yaml"}, "missing.yaml"},
		"review with missing policies":        {[]string{"review", "-f", "x", "--policy-dir", "missing"}, "missing"},
		"policies that are a file":            {[]string{"policy", "check", "main.go"}, "is not a directory"},
		"policies that are not there":         {[]string{"policy", "test", empty}, "holds no *.rego"},
		"formatting nothing":                  {[]string{"policy", "fmt", empty}, "holds no *.rego"},
		"policy check without a directory":    {[]string{"policy", "check"}, "name a directory of policies"},
		"init in a directory with something":  {[]string{"policy", "init", "internal"}, "is not empty: nothing written"},
		"init over a file":                    {[]string{"policy", "init", "main.go"}, "main.go"},
		"call without a request":              {[]string{"call", "--pipe", "filesystem-v1", "Mkdir"}, "name a method and a request"},
		"call without a pipe":                 {[]string{"call", "Mkdir", "{}"}, "name a pipe with --pipe"},
		"call of an unknown pipe":             {[]string{"call", "--pipe", "filesystem-v9", "Mkdir", "{}"}, `no pipe "filesystem-v9" is known`},
		"call of an unknown method":           {[]string{"call", "--pipe", "filesystem-v1", "Format", "{}"}, `filesystem-v1 has no method "Format"`},
		"call of a newer method":              {[]string{"call", "--pipe", "filesystem-v1alpha1", "CreateSymlink", "{}"}, `has no method "CreateSymlink"`},
		"call with broken JSON":               {[]string{"call", "--pipe", "filesystem-v1", "Mkdir", "{"}, "request of /v1.Filesystem/Mkdir"},
		"call with an unknown field":          {[]string{"call", "--pipe", "filesystem-v1", "Mkdir", `{"pth": "x"}`}, `unknown field "pth"`},
		"call with a number for a path":       {[]string{"call", "--pipe", "filesystem-v1", "Mkdir", `{"path": 1}`}, "request of"},
		"call with no time":                   {[]string{"call", "--pipe", "filesystem-v1", "--timeout", "0s", "Mkdir", "{}"}, "--timeout must be positive"},
		"call --list with a method":           {[]string{"call", "--list", "Mkdir"}, "--list takes no method"},
		"call --list of an unknown pipe":      {[]string{"call", "--list", "--pipe", "x"}, `no pipe "x" is known`},
		"audit show of a missing file":        {[]string{"audit", "show", "missing.jsonl"}, "missing.jsonl"},
		"audit show without a file":           {[]string{"audit", "show"}, "name a log: pipeguard audit show LOG"},
		"audit show of a log and two ids":     {[]string{"audit", "show", "a", "b", "c"}, `"c" is too many`},
		"a command with a slip":               {[]string{"revew"}, `did you mean "review"?`},
		"a command of a group with a slip":    {[]string{"policy", "chek"}, `did you mean "check"?`},
		"an unknown flag of a command":        {[]string{"review", "--file", "x"}, "unknown flag: --file; see \"pipeguard review --help\""},
		"audit check of an empty directory":   {[]string{"audit", "check", empty}, "holds no segments"},
		"version with an argument":            {[]string{"version", "x"}, `unexpected argument "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", c.args...)
			if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, c.want) {
				t.Errorf("exit code %d, standard error %q; want 2 and %q", got.Code, got.ErrOut, c.want)
			}
			if strings.ContainsRune(got.ErrOut, '\x1b') {
				t.Errorf("standard error holds an escape: %q", got.ErrOut)
			}
		})
	}
}

// A variable that is not set leaves a flag empty, and of two values one would be ignored.
func TestAFlagOfOneTextIsGivenOnceAndNotEmpty(t *testing.T) {
	single, count := regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+) (string|\w+(?:\|\w+)+) `), 0
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			look(c)
		}
		for _, m := range single.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
			if m[1] == "subpath" { // an empty one is none, as in manifests
				continue
			}
			count++
			value, word := cmd.Flags().Lookup(m[1]).Value, strings.Split(m[2], "|")[0]
			if err := value.Set(" "); err == nil {
				t.Errorf("%s --%s: a blank is taken", cmd.CommandPath(), m[1])
			}
			if err := value.Set(word); err != nil {
				t.Errorf("%s --%s: %v", cmd.CommandPath(), m[1], err)
			}
			if err := value.Set(word); err == nil || !strings.Contains(err.Error(), "given twice") || value.String() != word {
				t.Errorf("%s --%s: a second value: %v", cmd.CommandPath(), m[1], err)
			}
		}
	}
	look(NewRoot())
	if count < 40 {
		t.Errorf("only %d flags take one text", count)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"empty": {[]string{"review", "-f", "x", "--params", ""}, `"--params" flag: it is empty`},
		"twice": {[]string{"review", "-f", "x", "-o", "json", "-o", "json"}, "flag: it is given twice"},
	} {
		if got := execute(t, "", c.args...); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestVersionNamesTheProgram(t *testing.T) {
	if got := execute(t, "", "version"); got.Code != cli.ExitYes || !strings.HasPrefix(got.Out, "pipeguard v") {
		t.Errorf("got %+v", got)
	}
}

// brokenPipe is an output that cannot be written to.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestOutputThatCannotBeWrittenIsNoSuccess(t *testing.T) {
	for _, args := range [][]string{
		{"version"},
		{"canonical", "x"},
		{"review", "-f", "internal/reviewcmd/testdata/review/ordinary.yaml"},
		{"review", "-o", "json", "-f", "internal/reviewcmd/testdata/review/ordinary.yaml"},
		{"call", "--list"},
		{"audit", "show", "-"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var errOut bytes.Buffer
			code := runCommand(context.Background(), args, strings.NewReader(""), brokenPipe{}, &errOut)
			if code != cli.ExitBadInput || !strings.Contains(errOut.String(), "write output") {
				t.Errorf("exit code %d, standard error %q", code, errOut.String())
			}
		})
	}
}
