package auditcmd

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func intent(id string) audit.Event {
	return audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageRequestReceived, ID: id,
		Who: &audit.Who{
			Assurance: "process",
			Process:   &audit.WhoProcess{PID: 812, Exe: `C:\csi\azuredisk.exe`},
			User:      &audit.WhoUser{SID: "S-1-5-93-2-1"},
		},
		What: &audit.What{
			Pipe: "csi-proxy-filesystem-v1alpha1", Group: "filesystem", Version: "v1alpha1", Method: "CreateSymlink",
			FullMethod: "/v1alpha1.Filesystem/LinkPath", Verb: "write",
			Targets: []audit.Target{{Kind: "path", Value: `C:\a`}, {Kind: "path", Value: `c:/B`, Canonical: `C:\B`}},
		},
		Decision: &audit.Decision{Effect: audit.EffectAllow, Reason: "rule", Rule: "drivers", Mode: "Enforce"},
	}
}

func end(id string, intentSeq uint64) audit.Event {
	e := intent(id)
	e.Stage, e.IntentSeq = audit.StageResponseComplete, intentSeq
	e.Outcome = &audit.Outcome{Result: audit.ResultOK, Code: "OK"}
	return e
}

func denial(id string) audit.Event {
	e := end(id, 0)
	e.What.FullMethod = "/v1.Filesystem/CreateSymlink"
	e.Decision = &audit.Decision{Effect: audit.EffectDeny, Reason: "no rule allows it", Mode: "LogOnly"}
	e.Outcome = &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Error: "no\nrule"}
	return e
}

// hostile is what a caller can put into records: text for a terminal instead of text for people.
func hostile(id string) audit.Event {
	e := denial(id)
	e.Who = &audit.Who{Assurance: "none"}
	e.What = &audit.What{Pipe: "csi-proxy-filesystem-v1", FullMethod: "/v1.Filesystem/\x1b[2J", Targets: []audit.Target{{Kind: "path", Value: "C:\\\u202e\tx\nforged"}}}
	return e
}

// contained is a denial by a bundle to a container of a pod, about which something is in doubt.
func contained(id string) audit.Event {
	e := denial(id)
	e.Who = &audit.Who{
		Assurance: "pod", Process: &audit.WhoProcess{PID: 813, Exe: `C:\csi\smb.exe`}, User: &audit.WhoUser{SID: "S-1-5-93-2-1"},
		Pod:       &audit.WhoPod{Namespace: "kube-system", Name: "csi-smb-node-x", UID: "u", ServiceAccount: "csi-smb-node-sa"},
		Container: &audit.WhoContainer{ID: "c0ffee", Name: "smb", Image: "registry.example/smb:v1"}, Doubt: "what\u202eis",
	}
	e.Decision = &audit.Decision{
		Effect: audit.EffectDeny, Reason: "PN001: no", Rule: "PN001", Mode: "Enforce", Policy: &audit.Policy{Name: "bundle", Revision: "sha256:00ff", Bundle: 1767323045},
	}
	return e
}

// admitted is what the webhook records of a driver's pod.
func admitted(id string) audit.Event {
	return audit.Event{
		Type: audit.TypeAdmission, Stage: audit.StageResponseComplete, ID: id,
		Who: &audit.Who{
			Assurance: "apiserver",
			User:      &audit.WhoUser{Name: "system:serviceaccount:kube-system:daemon-set-controller"},
			Pod:       &audit.WhoPod{Namespace: "kube-system", Name: "driver"},
		},
		What: &audit.What{Verb: "CREATE", Targets: []audit.Target{
			{Kind: "pipe", Value: "//./pipe/a", Canonical: `\\.\pipe\a`}, {Kind: "pipe", Value: `\\.\pipe\b`}, {Kind: "pipe", Value: `\\.\pipe\c`},
		}},
		Decision: &audit.Decision{Effect: audit.EffectAllow, Reason: "warn", Rule: "PG004", Mode: "Enforce"},
		Outcome:  &audit.Outcome{Result: audit.ResultOK, Code: "200"},
	}
}

func TestAuditShowPrintsARowForEachRecord(t *testing.T) {
	file := clitest.Stream(t, intent("a"), end("a", 2), denial("b"), hostile("c"), admitted("d"), contained("e"))
	for name, args := range map[string][]string{"show": {}, "show-wide": {"--wide"}} {
		got := execute(t, "", append([]string{"audit", "show", file}, args...)...)
		if got.Code != cli.ExitYes || got.ErrOut != "not verified: no keys given\n" {
			t.Errorf("exit code %d, standard error %q", got.Code, got.ErrOut)
		}
		clitest.Golden(t, "audit-"+name+".txt", got.Out)
		if strings.ContainsAny(got.Out, "\x1b\u202e\t") || strings.Count(got.Out, "\n") != 9 {
			t.Errorf("the output is not nine inert lines: %q", got.Out)
		}
	}
}

func TestAuditShowNamesLinesThatAreNoRecords(t *testing.T) {
	text, err := os.ReadFile(clitest.Stream(t, intent("a"), end("a", 2)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ in, want string }{
		"text":                    {"hello\x1b\n", "line 5: "},
		"a record cut short":      {`{"v":1`, "line 5: ends without a newline"},
		"a record of the future":  {`{"v":9}` + "\n", "line 5: unknown record version 9"},
		"a field that is unknown": {`{"v":1,"seq":1,"session":"s","x":1}` + "\n", "line 5: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, string(text)+c.in, "audit", "show", "-")
			if got.Code != cli.ExitIncomplete || !strings.Contains(got.ErrOut, c.want) || strings.ContainsRune(got.ErrOut, '\x1b') {
				t.Errorf("exit code %d, standard error %q, want %q", got.Code, got.ErrOut, c.want)
			}
			if strings.Count(got.Out, "\n") != 5 {
				t.Errorf("the good records are not all shown:\n%s", got.Out)
			}
		})
	}
}

func TestAuditCheckSaysWhetherRecordsAreComplete(t *testing.T) {
	lines := func(events ...audit.Event) []string {
		text, err := os.ReadFile(clitest.Stream(t, events...))
		if err != nil {
			t.Fatal(err)
		}
		return strings.SplitAfter(string(text), "\n")
	}
	whole := lines(intent("a"), end("a", 2), denial("b"))
	for name, c := range map[string]struct {
		lines []string
		code  int
		want  string
	}{
		"all there":              {whole, cli.ExitYes, "consistent: no gaps"},
		"no records":             {nil, cli.ExitIncomplete, "incomplete: there are no records"},
		"a record is missing":    {append(append([]string{}, whole[:2]...), whole[3:]...), cli.ExitIncomplete, "expected number 3"},
		"an intent without end":  {lines(intent("a")), cli.ExitIncomplete, "record 2 (id \"a\") is an intent that nothing ends"},
		"an end without intent":  {lines(end("a", 2)), cli.ExitIncomplete, "ends an operation that has no intent"},
		"two ends of one intent": {lines(intent("a"), end("a", 2), end("a", 2)), cli.ExitIncomplete, "a second terminal record"},
		"two records swapped":    {append([]string{whole[0], whole[2], whole[1]}, whole[3:]...), cli.ExitIncomplete, "expected number 2"},
		"a line of text":         {append([]string{"x\n"}, whole...), cli.ExitIncomplete, "the line before is no record"},
		"a torn last line":       {append(append([]string{}, whole[:4]...), `{"v":1`), cli.ExitIncomplete, "the last line has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			in := strings.Join(c.lines, "")
			got := execute(t, in, "audit", "check", "-")
			if got.Code != c.code || !strings.Contains(got.Out, c.want) {
				t.Errorf("exit code %d, want %d; output %q, want %q in it", got.Code, c.code, got.Out, c.want)
			}
			asJSON := execute(t, in, "audit", "check", "-", "-o", "json")
			if asJSON.Code != c.code || strings.Contains(asJSON.Out, `"consistent": true`) != (c.code == cli.ExitYes) {
				t.Errorf("exit code %d with -o json, want %d: %s", asJSON.Code, c.code, asJSON.Out)
			}
		})
	}
}

func TestAuditCheckInJSON(t *testing.T) {
	clitest.Golden(t, "audit-check.json", execute(t, "", "audit", "check", "-o", "json", clitest.Stream(t, intent("a"), end("a", 2), denial("b"))).Out)
	sessions := varyingSession.ReplaceAllString(execute(t, "", "audit", "check", "-o", "json", clitest.Stream(t, intent("a"), end("b", 7))).Out, `"session": "(varies)"`)
	clitest.Golden(t, "audit-check-faults.json", sessions)
}

var varyingSession = regexp.MustCompile(`"session": "[A-Z2-7]+"`)
