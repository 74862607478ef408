package auditcmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func TestRowsNamePermitsCallersThatLeftAndHowMany(t *testing.T) {
	d := &audit.Decision{Effect: audit.EffectAllow, Rule: "driver", Mode: "Enforce", Permits: []string{"Reformat", "SystemDisk"}}
	if got, want := decision(d, false), "allow: driver (permits Reformat, SystemDisk)"; got != want {
		t.Errorf("decision %q, want %q", got, want)
	}
	for _, tt := range []struct {
		o      audit.Outcome
		isWide bool
		want   string
	}{
		{audit.Outcome{Result: audit.ResultOK, Code: "OK", CallerLeft: true}, false, "ok (caller left)"},
		{audit.Outcome{Result: audit.ResultError, Code: "NotFound", CallerLeft: true}, false, "NotFound (caller left)"},
		{audit.Outcome{Result: audit.ResultError, Code: "NotFound", CallerLeft: true}, true, "error NotFound (caller left)"},
		{audit.Outcome{Result: audit.ResultOK, Code: "OK"}, false, "ok"},
		{audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Count: 5000}, false, "denied (5000 times)"},
		{audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Count: 5000}, true, "denied PermissionDenied (5000 times)"},
	} {
		if got := outcome(audit.Event{Type: audit.TypeRequest, Stage: audit.StageSummary, Outcome: &tt.o}, tt.isWide); got != tt.want {
			t.Errorf("outcome %q, want %q", got, tt.want)
		}
	}
}

func TestCallersAreNamedByTheMostThatWasProven(t *testing.T) {
	process, system := &audit.WhoProcess{PID: 7, Exe: `C:\d\x.exe`}, &audit.WhoUser{SID: "S-1-5-18", Name: `NT AUTHORITY\SYSTEM`}
	pod := &audit.WhoPod{Namespace: "a", Name: "p", UID: "u", ServiceAccount: "sa"}
	contained := &audit.WhoContainer{ID: "c0ffee", Name: "c", Image: "r.io/x:v1"}
	for name, tt := range map[string]struct {
		who         audit.Who
		short, wide string
	}{
		"a container": {audit.Who{Assurance: "pod", Process: process, User: system, Pod: pod, Container: contained},
			"a/p/c x.exe[7]", `a/p/c NT AUTHORITY\SYSTEM C:\d\x.exe[7]`},
		"a HostProcess container with a token": {audit.Who{Assurance: "pod", Process: process, Pod: pod, Container: &audit.WhoContainer{Name: "c", HostProcess: true}, Token: true},
			"a/p/c x.exe[7] (HostProcess) (token)", `a/p/c C:\d\x.exe[7] (HostProcess) (token)`},
		"a container without a name": {audit.Who{Assurance: "pod", Pod: pod, Container: &audit.WhoContainer{ID: "c0ffee"}}, "a/p/c0ffee", "a/p/c0ffee"},
		"a pod without a container":  {audit.Who{Assurance: "pod", Pod: pod, Doubt: "d"}, "a/p (doubt)", "a/p"},
		"a process of the host":      {audit.Who{Assurance: "process", Process: process, User: system, Host: true}, `host:NT AUTHORITY\SYSTEM x.exe[7]`, `host:NT AUTHORITY\SYSTEM C:\d\x.exe[7]`},
		"a process of which nobody knows": {audit.Who{Assurance: "process", Process: process, User: &audit.WhoUser{SID: "S-1-5-18"}, Doubt: "runtime away"},
			"S-1-5-18 x.exe[7] (doubt)", `S-1-5-18 C:\d\x.exe[7]`},
		"a program named like a verified caller": {audit.Who{Assurance: "process", Process: &audit.WhoProcess{PID: 7, Exe: `/d/csi.exe[1] (token) "x`}, User: &audit.WhoUser{SID: "S-1-5-18"}},
			`S-1-5-18 "csi.exe[1] (token) \x22x"[7]`, `S-1-5-18 "/d/csi.exe[1] (token) \x22x"[7]`},
		"nobody": {audit.Who{Assurance: "none"}, "assurance:none", "assurance:none"},
	} {
		e := audit.Event{Type: audit.TypeRequest, Who: &tt.who}
		if short, wide := callerCell(e, false), callerCell(e, true); short != tt.short || wide != tt.wide {
			t.Errorf("%s: %q, want %q; wide %q, want %q", name, short, tt.short, wide, tt.wide)
		}
	}
}

func TestWideRowsHaveACellForEachColumn(t *testing.T) {
	full := audit.Event{
		Who:      &audit.Who{Pod: &audit.WhoPod{ServiceAccount: "sa"}, Container: &audit.WhoContainer{Image: "r.io/x:v1"}, Doubt: "d"},
		Decision: &audit.Decision{Policy: &audit.Policy{Name: "bundle", Revision: "sha256:1", Bundle: 5}},
	}
	for name, e := range map[string]audit.Event{"everything": full, "nothing": {}, "half": {Who: &audit.Who{}, Decision: &audit.Decision{Policy: &audit.Policy{Revision: "1"}}}} {
		for _, isWide := range []bool{false, true} {
			if got, want := len(row(query.Record{Event: e}, isWide)), len(header(isWide)); got != want {
				t.Errorf("%s, wide %v: %d cells under %d names", name, isWide, got, want)
			}
		}
	}
	cells := row(query.Record{Event: full}, true)
	if got, want := cells[len(cells)-4:], []string{"sa", "r.io/x:v1", "d", "bundle sha256:1, revision 5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A method that is not known, and one of a forwarded pipe, is whatever its caller says.
func TestAMethodLooksLikeNothingElse(t *testing.T) {
	for _, tt := range []struct {
		what        audit.What
		short, wide string
	}{
		{audit.What{FullMethod: "/v1.Volume/FormatVolume"}, "FormatVolume (unknown)", "/v1.Volume/FormatVolume"},
		{audit.What{FullMethod: "/v1.Volume/FormatVolume (as Mount)"}, `"FormatVolume (as Mount)" (unknown)`, `"/v1.Volume/FormatVolume (as Mount)"`},
		{audit.What{Method: "Stat (as Format)", FullMethod: "/a/Stat (as Format)"}, `"Stat (as Format)"`, `"Stat (as Format)"`},
		{audit.What{Method: "GetVolume", FullMethod: "/v1.Volume/Volume,Get"}, `GetVolume (as "Volume,Get")`, `GetVolume (as "Volume,Get")`},
	} {
		if short, wide := method(&tt.what, false), method(&tt.what, true); short != tt.short || wide != tt.wide {
			t.Errorf("%q, want %q; wide %q, want %q", short, tt.short, wide, tt.wide)
		}
	}
}

// A method of a forwarded pipe is whatever its caller says, and may have thousands of characters.
func TestALongMethodWidensNoTable(t *testing.T) {
	long := "/" + strings.Repeat("a.", 1000) + "B/" + strings.Repeat("c", 2000)
	for _, w := range []audit.What{{Method: long, FullMethod: long}, {FullMethod: long}, {Method: "Rmdir", FullMethod: long}} {
		if cell := method(&w, false); len(cell) > 2*maxCell+20 {
			t.Errorf("%d bytes of a method: %s", len(cell), cell)
		}
		if cell := method(&w, true); !strings.Contains(cell, strings.Repeat("c", 2000)) {
			t.Errorf("a wide table has no more than %d bytes", len(cell))
		}
	}
}

// The author of a program chooses its name, and the caller that of a method.
func TestALongProgramWidensNoTable(t *testing.T) {
	long := strings.Repeat("p", 120) + " " + strings.Repeat("q", 130)
	e := denial("a")
	e.Who = &audit.Who{Assurance: "process", User: &audit.WhoUser{SID: "S-1-5-18"}, Process: &audit.WhoProcess{PID: 7, Exe: `C:\d\` + long}}
	e.What.Method, e.What.FullMethod = strings.Repeat("m", 4000), "/v1.Disk/"+strings.Repeat("m", 4000)
	if got, want := callerCell(e, false), `S-1-5-18 pppppppppppppp…qqqqqqqqqqqqqqqqqqqqqqqqq[7]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := callerCell(e, true); !strings.Contains(got, long) {
		t.Errorf("a wide table has no more than %s", got)
	}
	file := clitest.Stream(t, e)
	for _, args := range [][]string{{"show", file}, {"search", file}, {"stats", file, "--by", "caller,method,program,target,error"}} {
		got := evidenceCommand(t, args...)
		for line := range strings.Lines(got.Out) {
			if got.Code != 0 || len(line) > 400 || !strings.Contains(got.Out, "S-1-5-18 ") || !strings.Contains(got.Out, "…") {
				t.Errorf("%s: exit code %d, a line of %d bytes: %.500s", args[0], got.Code, len(line), line)
			}
		}
	}
	if got := evidenceCommand(t, "stats", file, "--by", "caller,method", "-o", "json"); !strings.Contains(got.Out, strings.Repeat("q", 130)) || !strings.Contains(got.Out, strings.Repeat("m", 1000)) {
		t.Errorf("JSON is cut: %s", got.Out)
	}
}

func TestOnlyTheProgramOfACallerIsShortened(t *testing.T) {
	long := strings.Repeat("x", 100)
	const short = "xxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxxxxxxxx"
	for name, want := range map[string]string{
		"S-1-5-18 " + long:                 "S-1-5-18 " + short,
		`host:NT AUTHORITY\SYSTEM ` + long: `host:NT AUTHORITY\SYSTEM ` + short,
		`a b "` + long + ` y"`:             `a b "xxxxxxxxxxxxx…` + strings.Repeat("x", 22) + ` y"`,
		"kube-system/" + long + "/c":       "kube-system/" + long + "/c",
		long:                               short,
		"system:serviceaccount:kube-system:persistent-volume-binder": "system:serviceaccount:kube-system:persistent-volume-binder",
		"uid:7 (several)": "uid:7 (several)",
		"":                "",
		`"`:               `"`,
	} {
		if got := shortCaller(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A pod names paths as it likes: none reads as two, or as more than it is.
func TestAPathReadsAsOneInAList(t *testing.T) {
	what := &audit.What{Targets: []audit.Target{
		{Kind: "path", Value: `C:\a, \\.\pipe\csi-proxy-disk-v1`, Canonical: `c:\a; x`}, {Kind: "path", Value: `C:\Program Files`}, {Kind: "path", Value: `C:\b = C:\c "d" +9`},
	}, MoreTargets: 2}
	if got, want := targets(what, true), `"C:\a, \\.\pipe\csi-proxy-disk-v1" = "c:\a; x", C:\Program Files, "C:\b = C:\c \x22d\x22 +9", +2`; got != want {
		t.Errorf("wide: %s, want %s", got, want)
	}
	what.Targets = what.Targets[2:]
	if got, want := targets(what, false), `"C:\b = C:\c \x22d\x22 +9" +2`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
