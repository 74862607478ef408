package auditcmd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func TestEveryReaderSaysHowManyASummaryStandsFor(t *testing.T) {
	summary := denial("a")
	summary.Stage, summary.Decision.Mode, summary.Outcome.Count = audit.StageSummary, "Enforce", 5000
	file := clitest.Stream(t, summary)
	for name, args := range map[string][]string{
		"show": {"show", file}, "show wide": {"show", file, "--wide"}, "one": {"show", file, "a"}, "search": {"search", file}, "jsonl": {"search", file, "-o", "jsonl"}, "count": {"search", file, "--decision", "deny", "--count"},
		"tail": {"tail", file}, "stats": {"stats", file}, "stats in JSON": {"stats", file, "-o", "json"}, "hunt": {"hunt", file}, "hunt in JSON": {"hunt", file, "-o", "json"},
		"csv": {"export", file, "--format", "csv"}, "ecs": {"export", file, "--format", "ecs"}, "ocsf": {"export", file, "--format", "ocsf"}, "report": {"report", file, "-o", "-"}, "check": {"check", file},
	} {
		if got := evidenceCommand(t, args...); !strings.Contains(got.Out, "5000") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Nobody is told that a path was not touched, or how often it was, by records that do not say it.
func TestReadersSayHowManyRequestsMayHaveAPath(t *testing.T) {
	summary := denial("a")
	summary.Stage, summary.Decision.Mode, summary.Outcome.Count = audit.StageSummary, "Enforce", 655
	summary.What.Targets = []audit.Target{{Kind: "path", Value: `C:\x1`}, {Kind: "path", Value: `C:\x2`}}
	summary.What.MoreTargets = 149
	unread := denial("b")
	unread.Stage, unread.Decision = audit.StageSummary, nil
	unread.What = &audit.What{Pipe: "csi-proxy-filesystem-v1"}
	unread.Outcome = &audit.Outcome{Result: audit.ResultRejected, Code: "ResourceExhausted", Count: 438}
	file := clitest.Stream(t, summary, unread)
	const doubt = "of 1093 requests or connections it is not known whether they have that path"
	for name, c := range map[string]struct {
		args         []string
		out, onError string
	}{
		"count":    {[]string{"search", file, "--path", `C:\x99`, "--count"}, "at most 1093\n", doubt},
		"named":    {[]string{"search", file, "--path", `C:\x1`, "--decision", "deny", "--count"}, "at most 655\n", "of 655 requests"},
		"all":      {[]string{"search", file, "--count", "--stage", "summary"}, "1093\n", ""},
		"table":    {[]string{"search", file, "--path", `C:\x99`}, `C:\x1 +150 `, doubt},
		"wide":     {[]string{"search", file, "--path", `C:\x99`, "-o", "wide"}, `C:\x1, C:\x2, +149`, doubt},
		"one":      {[]string{"show", file, "a"}, "149", ""},
		"csv":      {[]string{"export", file, "--path", `C:\x99`, "--format", "csv"}, ",149\r\n", doubt},
		"ecs":      {[]string{"export", file, "--path", `C:\x99`, "--format", "ecs"}, `"more_targets":149`, doubt},
		"ocsf":     {[]string{"export", file, "--path", `C:\x99`, "--format", "ocsf"}, `"more_targets":149`, doubt},
		"stats":    {[]string{"stats", file, "--path", `C:\x99`, "--by", "target"}, "(several)", doubt},
		"in JSON":  {[]string{"stats", file, "--path", `C:\x99`, "-o", "json"}, doubt, doubt},
		"the page": {[]string{"report", file, "--path", `C:\x99`, "-o", "-"}, doubt, doubt},
	} {
		got := evidenceCommand(t, c.args...)
		if got.Code != 0 || !strings.Contains(got.Out, c.out) || !strings.Contains(got.ErrOut, c.onError) || strings.Contains(got.ErrOut, "no record of") {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "all" && (got.Out != c.out || strings.Contains(got.ErrOut, "not known")) {
			t.Errorf("without a path: %+v", got)
		}
	}
	summary.What.MoreTargets = audit.MaxMoreTargets
	if got := targets(summary.What, false); got != `C:\x1 +257 or more` {
		t.Errorf("what is counted no further: %q", got)
	}
}

func TestReadersSayHowManyRequestsMayLieOutsideATime(t *testing.T) {
	summary := denial("a")
	summary.Stage, summary.Decision.Mode = audit.StageSummary, "Enforce"
	summary.Outcome.Count, summary.Outcome.First = 655, summary.Time.Add(-9*time.Minute)
	file := clitest.Stream(t, summary)
	until := summary.Time.Add(-8 * time.Minute).UTC().Format(time.RFC3339)
	first := summary.Outcome.First.UTC()
	const doubt = "of 655 requests or connections it is not known whether they lie between those times"
	for name, c := range map[string]struct {
		args []string
		out  string
	}{
		"count": {[]string{"search", file, "--until", until, "--type", "request", "--count"}, "at most 655\n"},
		"wide":  {[]string{"search", file, "--until", until, "-o", "wide"}, "(655 times since " + first.Format(wideTime) + ")"},
		"stats": {[]string{"stats", file, "--until", until}, first.Format("01-02 15:04:05")},
		"ocsf":  {[]string{"export", file, "--until", until, "--format", "ocsf"}, fmt.Sprintf(`"start_time":%d`, first.UnixMilli())},
		"page":  {[]string{"report", file, "--until", until, "-o", "-"}, doubt},
	} {
		if got := evidenceCommand(t, c.args...); got.Code != 0 || !strings.Contains(got.Out, c.out) || !strings.Contains(got.ErrOut, doubt) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
