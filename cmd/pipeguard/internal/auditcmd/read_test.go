package auditcmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	corpus "github.com/pipeguard/pipeguard/test/audit/hostile"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// connected puts an event on a connection; closing is the record of its end.
func connected(e audit.Event, conn string) audit.Event {
	e.Corr = &audit.Corr{Conn: conn}
	return e
}

func closing(conn string) audit.Event {
	return audit.Event{
		Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: conn, Corr: &audit.Corr{Conn: conn},
		Outcome: &audit.Outcome{Result: audit.ResultOK, Code: "OK"},
	}
}

// incident is a log with a bit of everything.
func incident(t *testing.T) string {
	t.Helper()
	return clitest.Stream(t, connected(intent("a"), "c1"), connected(end("a", 2), "c1"), denial("b"), closing("c1"), admitted("d"), contained("e"), contained("f"))
}

func TestAuditSearchPrintsWhatFits(t *testing.T) {
	log := incident(t)
	for name, c := range map[string]struct {
		args []string
		want string // numbers of records
	}{
		"all":                              {nil, "1 2 3 4 5 6 7 8 9"},
		"a namespace":                      {[]string{"--namespace", "kube-system"}, "6 7 8"},
		"a namespace, and no admission":    {[]string{"--namespace", "kube-system", "--where", "type!=admission"}, "7 8"},
		"a pod":                            {[]string{"--pod", "kube-system/csi-smb-node-x"}, "7 8"},
		"one of two ids":                   {[]string{"--id", "a", "--id", "b"}, "2 3 4"},
		"denials that are enforced":        {[]string{"--decision", "deny"}, "7 8"},
		"denials that are not":             {[]string{"--decision", "logonly"}, "4"},
		"both, by effect":                  {[]string{"--effect", "deny"}, "4 7 8"},
		"a rule":                           {[]string{"--rule", "PN00*"}, "7 8"},
		"a bundle":                         {[]string{"--revision", "1767323045"}, "7 8"},
		"a path":                           {[]string{"--path", `c:\B`, "--stage", "intent"}, "2"},
		"a connection":                     {[]string{"--conn", "c1"}, "2 3 5"},
		"numbers":                          {[]string{"--seq", "3-4", "--seq", "9"}, "3 4 9"},
		"a time":                           {[]string{"--since", "2026-03-01", "--until", "2026-03-02"}, "1 2 3 4 5 6 7 8 9"},
		"before a time":                    {[]string{"--until", "2026-03-01T12:00"}, ""},
		"the first two":                    {[]string{"--limit", "2"}, "1 2"},
		"the served version of one method": {[]string{"--version", "v1alpha1", "--method", "LinkPath", "--code", "ok"}, "3"},
		"a program":                        {[]string{"--program", "AZUREDISK.exe", "--user", "s-1-5-93-2-1", "--stage", "intent"}, "2"},
		"an image, or none":                {[]string{"--image", "registry.example/*", "--image", "", "--type", "request"}, "2 3 4 7 8"},
		"nothing":                          {[]string{"--namespace", "kube"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", append([]string{"audit", "search", log, "-o", "jsonl"}, c.args...)...)
			var numbers []string
			for line := range strings.Lines(got.Out) {
				var r struct {
					Seq int `json:"seq"`
				}
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				numbers = append(numbers, fmt.Sprint(r.Seq))
			}
			if strings.Join(numbers, " ") != c.want || got.Code != cli.ExitYes {
				t.Errorf("records %s, exit code %d, %s; want %q", numbers, got.Code, got.ErrOut, c.want)
			}
			counted := execute(t, "", append([]string{"audit", "search", log, "--count"}, c.args...)...)
			if counted.Out != fmt.Sprintf("%d\n", len(numbers)) {
				t.Errorf("counted %q", counted.Out)
			}
		})
	}
}

func TestAuditSearchPrintsRecordsAsTheyStandInTheLog(t *testing.T) {
	log := incident(t)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got := execute(t, "", "audit", "search", "-o", "jsonl", log); got.Out != string(text) {
		t.Errorf("the lines are others:\n%s", got.Out)
	}
	fromStdin := execute(t, string(text), "audit", "search", "-", "-o", "wide")
	if fromFile := execute(t, "", "audit", "show", "--wide", log); fromStdin.Out != fromFile.Out {
		t.Errorf("the tables of search and show are two:\n%s\n%s", fromStdin.Out, fromFile.Out)
	}
}

func TestAuditReadsADirectoryOfSegments(t *testing.T) {
	text, err := os.ReadFile(incident(t))
	if err != nil {
		t.Fatal(err)
	}
	lines, dir := strings.SplitAfter(string(text), "\n"), t.TempDir()
	for i, part := range [][]string{lines[:3], lines[3:5], lines[5:]} {
		name := fmt.Sprintf("audit-%020d-0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10.jsonl", []int{1, 4, 6}[i])
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(part, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"search", dir, "-o", "jsonl"}, {"tail", dir, "-n", "100", "-o", "jsonl"}} {
		if got := execute(t, "", append([]string{"audit"}, args...)...); got.Out != string(text) || got.Code != cli.ExitYes {
			t.Errorf("%q: exit code %d, %s", args, got.Code, got.Out)
		}
	}
}

func TestAuditShowTellsTheStoryOfARequest(t *testing.T) {
	log := incident(t)
	for name, id := range map[string]string{"admitted": "a", "denied": "e"} {
		got := execute(t, "", "audit", "show", log, id)
		if got.Code != cli.ExitYes {
			t.Errorf("exit code %d, %s", got.Code, got.ErrOut)
		}
		clitest.Golden(t, "audit-story-"+name+".txt", sessions.ReplaceAllString(strings.ReplaceAll(got.Out, log, "LOG"), "${1}SESSION"))
		asJSON := execute(t, "", "audit", "show", log, id, "-o", "json", "--neighbours", "1")
		var story storyReport
		if err := json.Unmarshal([]byte(asJSON.Out), &story); err != nil || story.Schema != "pipeguard.dev/audit-show/v1" || len(story.Records) == 0 || len(story.Before) != 1 || len(story.After) != 1 {
			t.Errorf("%v: %s", err, asJSON.Out)
		}
		if (story.Connection != nil) != (id == "a") {
			t.Errorf("%s: connection %s", id, story.Connection)
		}
	}
}

// sessions are chosen anew for each log.
var sessions = regexp.MustCompile(`(session +)[A-Z2-7]{26}`)

func TestAuditStatsCountsRequestsOnce(t *testing.T) {
	log := incident(t)
	clitest.Golden(t, "audit-stats.txt", execute(t, "", "audit", "stats", log, "--by", "caller,method").Out)
	clitest.Golden(t, "audit-stats.json", execute(t, "", "audit", "stats", log, "--by", "hour", "-o", "json", "--type", "request").Out)
}

func TestAuditTailPrintsTheLast(t *testing.T) {
	log := incident(t)
	for args, want := range map[string]string{"-n 2": "8 9", "-n 0": "", "-n 2 --decision deny": "7 8", "-n 100 --id b": "4"} {
		got := execute(t, "", append([]string{"audit", "tail", log}, strings.Fields(args)...)...)
		var numbers []string
		for i, line := range strings.Split(strings.TrimSpace(got.Out), "\n") {
			if i > 0 {
				numbers = append(numbers, strings.Fields(line)[0])
			}
		}
		if strings.Join(numbers, " ") != want || got.Code != cli.ExitYes {
			t.Errorf("tail %s: %s, exit code %d", args, numbers, got.Code)
		}
	}
}

func TestAuditHuntFindsAndSaysSoWithItsExitCode(t *testing.T) {
	samples := "../../../../deploy/siem/sigma/samples/"
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a burst":                     {[]string{samples + "denials_burst.positive.jsonl"}, cli.ExitNo, "Many calls of one caller were denied"},
		"no burst":                    {[]string{samples + "denials_burst.negative.jsonl"}, cli.ExitYes, ""},
		"a level that is too high":    {[]string{samples + "denials_burst.positive.jsonl", "--level", "critical"}, cli.ExitYes, ""},
		"filtered out":                {[]string{samples + "denials_burst.positive.jsonl", "--pod", "another"}, cli.ExitYes, ""},
		"a pipe of another process":   {[]string{samples + "panic.negative.jsonl", "--proxy-log", samples + "unguarded_pipe.positive.jsonl"}, cli.ExitNo, "served by another process"},
		"a calm diagnostic log":       {[]string{samples + "panic.negative.jsonl", "--proxy-log", samples + "unguarded_pipe.negative.jsonl"}, cli.ExitYes, ""},
		"a diagnostic log of text":    {[]string{samples + "panic.negative.jsonl", "--proxy-log", "command.go"}, cli.ExitIncomplete, ""},
		"a diagnostic log, not there": {[]string{samples + "panic.negative.jsonl", "--proxy-log", "missing"}, cli.ExitBadInput, ""},
		"lines that are no records":   {[]string{"command.go"}, cli.ExitIncomplete, ""},
		"rules that are none":         {[]string{samples + "panic.positive.jsonl", "--rules", "testdata"}, cli.ExitBadInput, ""},
		"its own rules by name":       {[]string{samples + "panic.positive.jsonl", "--rules", "../../../../deploy/siem/sigma"}, cli.ExitNo, "A call ended by a fault of the proxy"},
		"the list":                    {[]string{"--list"}, cli.ExitYes, "critical"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", append([]string{"audit", "hunt"}, c.args...)...)
			if got.Code != c.code || !strings.Contains(got.Out, c.want) {
				t.Errorf("exit code %d, want %d; %q, want %q in it; %s", got.Code, c.code, got.Out, c.want, got.ErrOut)
			}
		})
	}
	got := execute(t, "", "audit", "hunt", samples+"panic.positive.jsonl", "-o", "json")
	var finding findingReport
	if err := json.Unmarshal([]byte(got.Out), &finding); err != nil || finding.Level != "high" || len(finding.Record) == 0 {
		t.Errorf("%v: %s", err, got.Out)
	}
}

func TestAuditReportReplacesNoFile(t *testing.T) {
	log, page := incident(t), filepath.Join(t.TempDir(), "report.html")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got := execute(t, "", "audit", "report", log, "-o", log); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "is there already") {
		t.Errorf("exit code %d, %s", got.Code, got.ErrOut)
	}
	if after, err := os.ReadFile(log); err != nil || string(after) != string(before) {
		t.Errorf("the log was overwritten, %v", err)
	}
	for i, args := range [][]string{{"-o", page}, {"-o", page}, {"-o", page, "--overwrite"}, {"-o", "-", "--namespace", "kube-system"}} {
		got := execute(t, "", append([]string{"audit", "report", log}, args...)...)
		if want := i == 1; (got.Code != cli.ExitYes) != want {
			t.Errorf("%q: exit code %d, %s", args, got.Code, got.ErrOut)
		}
		if i == 3 && (!strings.Contains(got.Out, "only --namespace kube-system") || !strings.Contains(got.Out, "Not verified")) {
			t.Errorf("the page does not say what was left out and that nothing was verified")
		}
	}
}

func TestAuditCommandsRefuse(t *testing.T) {
	log := incident(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"search without a log":           {[]string{"search"}, "name a log"},
		"search of nothing there":        {[]string{"search", "missing"}, "missing"},
		"search of an empty directory":   {[]string{"search", t.TempDir()}, "holds no segments"},
		"an unknown field":               {[]string{"search", log, "--where", "rule=x foo=1"}, "column 8"},
		"a time that is none":            {[]string{"search", log, "--since", "soon"}, `--since "soon", column 1`},
		"two beginnings":                 {[]string{"search", log, "--since", "1h", "--since", "2h"}, "given twice"},
		"a range that ends early":        {[]string{"search", log, "--seq", "5-4"}, "column 3"},
		"a negative limit":               {[]string{"search", log, "--limit", "-1"}, "negative"},
		"an unknown form":                {[]string{"search", log, "-o", "xml"}, "must be table, wide or jsonl"},
		"standard input twice":           {[]string{"search", "-", "-"}, "once"},
		"show of an unknown id":          {[]string{"show", log, "nobody\x1b"}, "no record has the id"},
		"show of too many neighbours":    {[]string{"show", log, "a", "--neighbours", "1000"}, "between 0 and 100"},
		"show of all as JSON":            {[]string{"show", log, "-o", "json"}, "name its id"},
		"stats by nothing there":         {[]string{"stats", log, "--by", "colour"}, "nothing to count by"},
		"stats by nothing":               {[]string{"stats", log, "--by", ""}, "--by"},
		"stats with a negative top":      {[]string{"stats", log, "--top", "-1"}, "negative"},
		"tail of two logs":               {[]string{"tail", log, log}, "is too many"},
		"tail of too many":               {[]string{"tail", log, "-n", "1000000"}, "between 0 and 10000"},
		"tail that follows stdin":        {[]string{"tail", "-f", "-"}, "cannot be followed"},
		"export without a format":        {[]string{"export", log}, "--format"},
		"export in an unknown format":    {[]string{"export", log, "--format", "xml"}, "must be ocsf, ecs or csv"},
		"report without a file":          {[]string{"report", log}, "-o"},
		"report into no directory":       {[]string{"report", log, "-o", "missing/x.html"}, "missing"},
		"hunt without a log":             {[]string{"hunt"}, "name a log"},
		"hunt with rules that are gone":  {[]string{"hunt", log, "--rules", "missing"}, "missing"},
		"hunt at an unknown level":       {[]string{"hunt", log, "--level", "severe"}, "must be informational"},
		"show of an id among text lines": {[]string{"show", "command.go", "x"}, "line 1: not a record"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", append([]string{"audit"}, c.args...)...)
			if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, c.want) || strings.ContainsRune(got.ErrOut, '\x1b') {
				t.Errorf("exit code %d, %q; want %q", got.Code, got.ErrOut, c.want)
			}
		})
	}
}

func TestAuditOutputsOfHostileRecordsAreInert(t *testing.T) {
	for _, text := range corpus.Texts() {
		denied, let := corpus.Event(text), corpus.Event(text)
		let.Stage, let.Outcome = audit.StageRequestReceived, nil
		log := clitest.Stream(t, let, denied, connected(closing("x"), text))
		for _, args := range [][]string{
			{"search", log}, {"search", log, "-o", "wide"}, {"search", log, "-o", "jsonl"}, {"show", log}, {"show", log, "hostile"}, {"show", log, "hostile", "-o", "json"},
			{"tail", log}, {"stats", log, "--by", "caller,method,target,reason"}, {"stats", log, "--by", "pod", "-o", "json"}, {"hunt", log}, {"hunt", log, "-o", "json"},
			{"export", log, "--format", "csv"}, {"export", log, "--format", "ecs"}, {"export", log, "--format", "ocsf"}, {"report", log, "-o", "-"},
		} {
			got := execute(t, "", append([]string{"audit"}, args...)...)
			if got.Out == "" && args[0] != "hunt" {
				t.Errorf("%q of %q: nothing, %s", args, text, got.ErrOut)
			}
			for _, r := range strings.ReplaceAll(got.Out, "\r\n", "\n") {
				if r != '\n' && !isInert(r) {
					t.Errorf("%q of %q prints %U", args, text, r)
				}
			}
			if strings.Contains(got.Out, "\nforged line") {
				t.Errorf("%q of %q prints a forged line", args, text)
			}
		}
	}
}

func TestALineThatNoWriterOfOursWroteIsInertToo(t *testing.T) {
	raw := "{\"v\":1,\"seq\":1,\r\t\"type\":\"request\",\"stage\":\"Panic\",\"time\":\"2026-03-01T12:00:00Z\",\"session\":\"s\",\"id\":\"x\",\"decision\":{\"effect\":\"deny\",\"reason\":\"\u202e\u009b2J\x7f</script>\"}}\n"
	for _, args := range [][]string{
		{"search", "-", "-o", "jsonl"}, {"search", "-"}, {"show", "-", "x", "-o", "json"}, {"show", "-", "x"}, {"hunt", "-", "-o", "json"}, {"report", "-", "-o", "-"}, {"export", "-", "--format", "ocsf"},
	} {
		got := execute(t, raw, append([]string{"audit"}, args...)...)
		if got.Out == "" || strings.IndexFunc(got.Out, func(r rune) bool { return r != '\n' && !isInert(r) }) >= 0 {
			t.Errorf("%q prints %q, %s", args, got.Out, got.ErrOut)
		}
		if strings.Contains(got.Out, "</script>") && args[0] != "search" && args[0] != "show" && args[0] != "hunt" {
			t.Errorf("%q prints a tag", args)
		}
	}
}

// isInert is not the product's own function: what a terminal acts on is written down again.
func isInert(r rune) bool {
	return r >= 0x20 && r < 0x7f || r > 0xa0 && r != 0xad && r != '\ufeff' && (r < 0x300 || r > 0x36f) && (r < 0x200b || r > 0x200f) && (r < 0x2028 || r > 0x202e) &&
		(r < 0x2060 || r > 0x206f) && (r < 0xe000 || r > 0xf8ff) && r < 0xe0000 && r != '\u3000'
}

func TestAuditCommandsEndIncompleteWhereLinesAreNoRecords(t *testing.T) {
	for _, args := range [][]string{
		{"search", "command.go"}, {"stats", "command.go"}, {"export", "--format", "csv", "command.go"}, {"tail", "command.go"}, {"report", "command.go", "-o", "-"},
	} {
		got := execute(t, "", append([]string{"audit"}, args...)...)
		if got.Code != cli.ExitIncomplete || !strings.Contains(got.ErrOut, "line 1: not a record") && !strings.Contains(got.ErrOut, "lines are no records") {
			t.Errorf("%q: exit code %d, %q", args, got.Code, got.ErrOut)
		}
	}
}
