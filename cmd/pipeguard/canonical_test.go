package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func TestCanonicalPrintsOneLineForEachPath(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  []string
	}{
		"a pipe": {
			args: []string{`\\.\pipe\csi-proxy-disk-v1`},
			want: []string{`{"input":"\\\\.\\pipe\\csi-proxy-disk-v1","subPath":null,"kind":"pipe","canonical":"\\\\.\\pipe\\csi-proxy-disk-v1","match":true}`},
		},
		"characters that are special in HTML stay readable": {
			args: []string{`C:\<a&b>`},
			want: []string{`{"input":"C:\\<a&b>","subPath":null,"kind":"path","canonical":"C:\\<a&b>","match":false}`},
		},
		"characters that could act on a terminal are escaped": {
			args: []string{"//./pipe/\x1b[2J\u202e\u009b"},
			want: []string{`{"input":"//./pipe/\u001b[2J\u202e\u009b","subPath":null,"kind":"malformed","canonical":"\\\\.\\pipe\\\u001b[2j\u202e\u009b","match":true}`},
		},
		"a path that begins with a dash": {
			args: []string{"--", "-x"},
			want: []string{`{"input":"-x","subPath":null,"kind":"path","canonical":"-x","match":false}`},
		},
		"a subPath": {
			args: []string{"--subpath", "csi-proxy-disk-v1", `\\.\pipe`},
			want: []string{`{"input":"\\\\.\\pipe","subPath":"csi-proxy-disk-v1","kind":"pipe-root","canonical":"\\\\.\\pipe","match":true}`},
		},
		"an empty subPath is none": {
			args: []string{"--subpath", "", "a"},
			want: []string{`{"input":"a","subPath":null,"kind":"path","canonical":"a","match":false}`},
		},
		"another pattern replaces the default": {
			args: []string{"--pattern", "docker_engine", `\\.\pipe\Docker_Engine`, `\\.\pipe\csi-proxy-disk-v1`},
			want: []string{
				`{"input":"\\\\.\\pipe\\Docker_Engine","subPath":null,"kind":"pipe","canonical":"\\\\.\\pipe\\docker_engine","match":true}`,
				`{"input":"\\\\.\\pipe\\csi-proxy-disk-v1","subPath":null,"kind":"pipe","canonical":"\\\\.\\pipe\\csi-proxy-disk-v1","match":false}`,
			},
		},
		"lines of standard input, the last without its end": {
			stdin: "a\n\nb\r\nc",
			args:  []string{"--stdin"},
			want: []string{
				`{"input":"a","subPath":null,"kind":"path","canonical":"a","match":false}`,
				`{"input":"","subPath":null,"kind":"path","canonical":"","match":false}`,
				`{"input":"b\r","subPath":null,"kind":"path","canonical":"b\r","match":false}`,
				`{"input":"c","subPath":null,"kind":"path","canonical":"c","match":false}`,
			},
		},
		"standard input with NUL": {
			stdin: "a\nb\x00c\x00",
			args:  []string{"--stdin", "-0"},
			want: []string{
				`{"input":"a\nb","subPath":null,"kind":"path","canonical":"a\nb","match":false}`,
				`{"input":"c","subPath":null,"kind":"path","canonical":"c","match":false}`,
			},
		},
		"nothing on standard input": {args: []string{"--stdin"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, c.stdin, append([]string{"canonical"}, c.args...)...)
			var want strings.Builder
			for _, line := range c.want {
				want.WriteString(line + "\n")
			}
			if diff := cmp.Diff(clitest.Result{Code: cli.ExitYes, Out: want.String()}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCanonicalRefusesAPathWithoutEnd(t *testing.T) {
	got := execute(t, strings.Repeat("a", maxPathLine+1), "canonical", "--stdin")
	if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "read standard input") {
		t.Errorf("exit code %d, standard error %q", got.Code, got.ErrOut)
	}
}

// The verdicts that users get are those that the package promises.
func TestCanonicalAgreesWithTheVectors(t *testing.T) {
	data, err := os.ReadFile("../../internal/core/pipepath/testdata/pipe-path-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		HostPath, Kind, Canonical string
		SubPath                   *string
		Match                     bool
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 50 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		args := []string{"canonical"}
		if v.SubPath != nil {
			args = append(args, "--subpath", *v.SubPath)
		}
		got := execute(t, "", append(args, "--", v.HostPath)...)
		var line canonicalLine
		if err := json.Unmarshal([]byte(got.Out), &line); err != nil || got.Code != cli.ExitYes {
			t.Errorf("%q: exit code %d, %v, %s", v.HostPath, got.Code, err, got.ErrOut)
			continue
		}
		want := canonicalLine{Input: v.HostPath, SubPath: v.SubPath, Kind: line.Kind, Canonical: v.Canonical, Match: v.Match}
		if diff := cmp.Diff(want, line); diff != "" || string(line.Kind) != v.Kind {
			t.Errorf("%q: kind %s, want %s\n%s", v.HostPath, line.Kind, v.Kind, diff)
		}
	}
}
