package pipepath

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewGuardRefusesPatternsThatGuardNothing(t *testing.T) {
	tests := []struct{ name, pattern, want string }{
		{"empty", "", `pipe pattern "" is empty`},
		{"a star in the middle", "csi-*-v1", "has a * that is not at its end"},
		{"a star at the beginning", "*proxy", "has a * that is not at its end"},
		{"two stars", "csi-proxy**", "has a * that is not at its end"},
		{"a question mark", "csi-proxy-disk-v?", "has a ?, which is no wildcard here"},
		{"a whole path", `\\.\pipe\csi-proxy*`, "has a separator"},
		{"a slash", "csi/proxy*", "has a separator"},
		{"NUL", "csi\x00*", "has a control character"},
		{"a newline", "csi-proxy\n", "has a control character"},
		{"right-to-left override", "csi\u202eproxy", "has a control character"},
		{"not UTF-8", "csi\xff", "is not UTF-8"},
		{"a dot at the end", "csi-proxy.", "ends in a dot or a space"},
		{"a dot before the star", "csi-proxy.*", "ends in a dot or a space"},
		{"a space at the end", "csi-proxy ", "ends in a dot or a space"},
		{"dots alone", "..", "ends in a dot or a space"},
		{"a blank before the name", " csi-proxy*", "has ' '"},
		{"a letter of another alphabet", "\u0441si-proxy*", `has '\u0441'`},
		{"another dash", "csi\u2011proxy*", `has '\u2011'`},
		{"a letter that folds to one of ASCII", "c\u017fi-proxy*", `has '\u017f'`},
		{"longer than a pipe's name can be", strings.Repeat("x", 257), "is longer than 256 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := NewGuard("good", tt.pattern)
			if g != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewGuard(%q) = %v, %v; want an error with %q", tt.pattern, g, err, tt.want)
			}
		})
	}
	if g, err := NewGuard(); g != nil || err == nil {
		t.Errorf("without patterns: %v, %v", g, err)
	}
}

// The schemas of PipePolicy and of the chart say what a pattern is before the programs do.
func TestSchemasTakeNoPatternThatTheProgramsRefuse(t *testing.T) {
	var schema struct {
		Definitions map[string]struct{ Pattern string }
	}
	text, err := os.ReadFile("../../../charts/pipeguard/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	crd, err := os.ReadFile("../../../config/crd/pipeguard.dev_pipepolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p := schema.Definitions["pipe"].Pattern; p == "" || !strings.Contains(string(crd), "pattern: "+p+"\n") {
		t.Errorf("the chart has the pattern %q, and PipePolicy another", p)
	}
	pattern := regexp.MustCompile(schema.Definitions["pipeOrAll"].Pattern)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts each time
	const letters = "aZ09._{}-* /\\?:ſс\u2011\x00\xff"
	runes := []rune(letters)
	taken := 0
	for range 100_000 {
		text := make([]rune, 1+r.IntN(4))
		for i := range text {
			text[i] = runes[r.IntN(len(runes))]
		}
		s := string(text)
		_, err := NewGuard(s)
		name, _ := strings.CutSuffix(s, "*")
		if isCut := strings.TrimRight(name, ".") != name; (err == nil) != (pattern.MatchString(s) && !isCut) { // which the schemas do not know
			t.Fatalf("%+q: %v, and the schema says %v", s, err, pattern.MatchString(s))
		}
		if err == nil {
			taken++
		}
	}
	if taken < 1000 {
		t.Errorf("%d patterns are taken", taken)
	}
}

func TestNewGuardReportsEveryFault(t *testing.T) {
	_, err := NewGuard("a*b", "good", "c/d", "")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"a*b"`, `"c/d"`, `""`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not name %s", err, want)
		}
	}
}

func TestPatternsAreFolded(t *testing.T) {
	g, err := NewGuard("CSI-Proxy*", "Docker_Engine", "*")
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, p := range g.patterns {
		written = append(written, p.written)
	}
	if diff := cmp.Diff([]string{"csi-proxy*", "docker_engine", "*"}, written); diff != "" {
		t.Error(diff)
	}
}

func TestJudgeMatchesExactNamesAndBeginnings(t *testing.T) {
	tests := []struct {
		name     string
		patterns []string
		pipe     string
		want     string // the pattern; empty for no match
	}{
		{"an exact name", []string{"docker_engine"}, `docker_engine`, "docker_engine"},
		{"an exact name in another case", []string{"docker_engine"}, `DOCKER_Engine`, "docker_engine"},
		{"an exact name for letters that fold", []string{"disk"}, `diſK`, "disk"},
		{"what is written below an exact name", []string{"docker_engine"}, `docker_engine\x`, "docker_engine"},
		{"a longer name is not the exact one", []string{"docker_engine"}, `docker_engine2`, ""},
		{"a shorter name is not the exact one", []string{"docker_engine"}, `docker`, ""},
		{"a beginning", []string{"csi-proxy*"}, `csi-proxy-x`, "csi-proxy*"},
		{"a beginning is complete", []string{"csi-proxy*"}, `csi-proxy`, "csi-proxy*"},
		{"a beginning with something below", []string{"csi-proxy*"}, `csi-proxy\x`, "csi-proxy*"},
		{"not the beginning", []string{"csi-proxy*"}, `my-csi-proxy`, ""},
		{"a beginning of another segment", []string{"csi-proxy*"}, `foo\csi-proxy`, ""},
		{"leading spaces are part of a name", []string{"csi-proxy*"}, ` csi-proxy`, ""},
		{"the first pattern that covers is named", []string{"a", "csi*", "csi-proxy*"}, `csi-proxy`, "csi*"},
		{"a bare star covers every pipe", []string{"*"}, `anything`, "*"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := NewGuard(tt.patterns...)
			if err != nil {
				t.Fatal(err)
			}
			v := g.Judge(`\\.\pipe\` + tt.pipe)
			if v.Kind != KindPipe || v.NeverAllowed || v.Match != (tt.want != "") || v.Pattern != tt.want {
				t.Errorf("%+v, want pattern %q", v, tt.want)
			}
		})
	}
}

func TestJudgeMountSeesThroughSubPaths(t *testing.T) {
	pipe := func(name string) Name { return Name{KindPipe, `\\.\pipe\` + name, name} }
	tests := []struct {
		name, hostPath, subPath string
		want                    Verdict
	}{
		{
			"the volume's own match stands", `\\.\pipe\csi-proxy-disk-v1`, `..\x`,
			Verdict{Name: pipe("csi-proxy-disk-v1"), Match: true, Pattern: "csi-proxy*"},
		},
		{
			"an ancestor matches whatever the subPath", `\\.\`, `C:\x`,
			Verdict{Name: Name{Kind: KindAncestor, Canonical: `\\.`}, Match: true, NeverAllowed: true},
		},
		{
			"the NT devices and a pipe", `\Device`, `NamedPipe\csi-proxy-disk-v1`,
			Verdict{Name: pipe("csi-proxy-disk-v1"), Match: true, Pattern: "csi-proxy*", SubPath: true},
		},
		{
			"the drive's root and an NT marker", `\`, `??\pipe\csi-proxy-disk-v1`,
			Verdict{Name: pipe("csi-proxy-disk-v1"), Match: true, Pattern: "csi-proxy*", SubPath: true},
		},
		{
			"the root and a subPath that doubles its separator", `/`, `\.\pipe\csi-proxy-disk-v1`,
			Verdict{Name: pipe("csi-proxy-disk-v1"), Match: true, Pattern: "csi-proxy*", SubPath: true},
		},
		{
			"no volume path", ``, `\\.\pipe\csi-proxy-disk-v1`,
			Verdict{Name: pipe("csi-proxy-disk-v1"), Match: true, Pattern: "csi-proxy*", SubPath: true},
		},
		{
			"dot-dot out of a share", `\\fs\data`, `..\pipe\csi-proxy-disk-v1`,
			Verdict{Name: Name{Kind: KindMalformedDotdot, Canonical: `\\fs\data\..\pipe\csi-proxy-disk-v1`}, Match: true, NeverAllowed: true, SubPath: true},
		},
		{
			"dot-dot out of a device", `\\.\mailslot`, `../pipe/csi-proxy-disk-v1`,
			Verdict{Name: Name{Kind: KindMalformedDotdot, Canonical: `\\.\mailslot\..\pipe\csi-proxy-disk-v1`}, Match: true, NeverAllowed: true, SubPath: true},
		},
		{
			"a control character in a share's subPath", `\\fs\data`, "a\x00b",
			Verdict{Name: Name{Kind: KindMalformed, Canonical: "\\\\fs\\data\\a\x00b"}, Match: true, NeverAllowed: true, SubPath: true},
		},
		{"the root and an ordinary subPath", `/`, `var`, Verdict{Name: Name{Kind: KindPath, Canonical: `/`}}},
		{"a drive and a pipe's path", `C:\`, `\\.\pipe\csi-proxy-disk-v1`, Verdict{Name: Name{Kind: KindPath, Canonical: `C:\`}}},
		{"a directory and dot-dot", `C:\x`, `..\..\pipe\csi-proxy`, Verdict{Name: Name{Kind: KindPath, Canonical: `C:\x`}}},
		{"another pipe and a name", `\\.\pipe\foo`, `csi-proxy`, Verdict{Name: pipe("foo")}},
		{"a share and a name", `\\fs\data`, `csi-proxy`, Verdict{Name: Name{Kind: KindUNC, Canonical: `\\fs\data`}}},
	}
	g := defaultGuard(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, g.JudgeMount(tt.hostPath, tt.subPath)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
