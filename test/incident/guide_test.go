package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const guide = "../../docs/reviewers-guide.md"

// shown is a command of the guide with what the guide says that it prints.
type shown struct {
	line    int // in the guide
	section string
	args    []string
	output  []string
	exit    int
}

var (
	heading  = regexp.MustCompile(`^#+ (.*)$`)
	exitCode = regexp.MustCompile(`^exit code (\d)$`)
)

// commands are those of the blocks that are marked "incident".
func commands(t *testing.T) (list []shown) {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	section, inside := "", false
	for i, line := range strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n") {
		switch h, exit := heading.FindStringSubmatch(line), exitCode.FindStringSubmatch(line); {
		case line == "```console incident":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case !inside && h != nil:
			section = h[1]
		case !inside:
		case strings.HasPrefix(line, "$ "):
			list = append(list, shown{line: i + 1, section: section, args: words(t, line[2:])})
		case len(list) == 0 || list[len(list)-1].section != section:
			t.Fatalf("%s:%d: output without a command", guide, i+1)
		case exit != nil:
			list[len(list)-1].exit, _ = strconv.Atoi(exit[1])
		default:
			list[len(list)-1].output = append(list[len(list)-1].output, line)
		}
	}
	return list
}

// words takes a command apart as a shell would, as far as the guide needs it.
func words(t *testing.T, command string) (list []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(command, -1) {
		list = append(list, m[1]+m[2])
	}
	if len(list) < 2 || list[0] != "pipeguard" {
		t.Fatalf("%q is no command of pipeguard", command)
	}
	return list[1:]
}

// The guide is run as it stands: whoever follows it sees what it shows.
func TestTheGuideShowsWhatTheCommandsPrint(t *testing.T) {
	exe, s := pipeguard(t), playOnce(t)
	r := reading{map[string]string{}}
	list := commands(t)
	if len(list) < 15 {
		t.Fatalf("only %d commands were found", len(list))
	}
	for _, c := range list {
		for i, arg := range c.args {
			if name, ok := r.names[arg]; ok {
				c.args[i] = name
			}
		}
		cmd := exec.CommandContext(t.Context(), exe, c.args...) //nolint:gosec // that was just built
		cmd.Dir = s.dir
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		printed := slices.Collect(strings.SplitSeq(strings.TrimRight(string(out), "\n"), "\n"))
		if len(out) == 0 {
			printed = nil
		}
		if cmd.ProcessState.ExitCode() != c.exit {
			t.Errorf("%s:%d: exit code %d", guide, c.line, cmd.ProcessState.ExitCode())
		}
		if missing, ok := r.compare(c.output, printed); !ok {
			t.Errorf("%s:%d: the guide expects\n%s\nand this was printed:\n%s", guide, c.line, missing, out)
		}
		for _, secret := range []string{sharePassword, guessed} {
			if forms := hides(out, secret); len(forms) > 0 {
				t.Errorf("%s:%d: it prints a password: %q", guide, c.line, forms)
			}
		}
	}
}

func TestTheGuideAnswersEachQuestionWithACommand(t *testing.T) {
	answered := map[string]bool{}
	for _, c := range commands(t) {
		answered[c.section] = true
	}
	for _, question := range []string{
		"Can I trust this log?", "Who was it?", "What was done?", "Where?", "When?", "Was it allowed, and why?", "How did it end?",
	} {
		if !answered[question] {
			t.Errorf("no command answers %q", question)
		}
	}
}

// Not only what the guide shows: every form that a log can be printed in.
func TestNoCommandPrintsASecret(t *testing.T) {
	exe, s := pipeguard(t), playOnce(t)
	for _, args := range [][]string{
		{"show", "evidence"}, {"show", "evidence", "--wide"}, {"search", "evidence", "-o", "wide"}, {"search", "evidence", "-o", "jsonl"}, {"tail", "evidence", "-n", "1000"},
		{"stats", "evidence", "--by", "reason,code"}, {"stats", "evidence", "--by", "method,reason", "-o", "json"}, {"hunt", "evidence", "-o", "json"},
		{"export", "evidence", "--format", "ocsf"}, {"export", "evidence", "--format", "ecs"}, {"export", "evidence", "--format", "csv"}, {"report", "evidence", "-o", "-"},
		{"check", "evidence", "-o", "json"}, {"verify", "evidence", "-o", "json"}, {"prove", "evidence", "--seq", "32", "--keys", "elsewhere/keys.pub"},
	} {
		cmd := exec.CommandContext(t.Context(), exe, append([]string{"audit"}, args...)...) //nolint:gosec // that was just built
		cmd.Dir = s.dir
		out, err := cmd.Output()
		if len(out) < 100 {
			t.Errorf("%q: %v: %s", args, err, out)
		}
		for _, secret := range []string{sharePassword, guessed} {
			if forms := hides(out, secret); len(forms) > 0 {
				t.Errorf("%q prints a password: %q", args, forms)
			}
		}
	}
}
