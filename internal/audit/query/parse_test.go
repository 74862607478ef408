package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestTermsAreReadAsWritten(t *testing.T) {
	e := audit.Event{
		Seq: 7, Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: noon,
		Who:      &audit.Who{Pod: &audit.WhoPod{Namespace: "kube-system", Name: "driver"}, Process: &audit.WhoProcess{Exe: `C:\Program Files\a "b".exe`}},
		What:     &audit.What{Method: "Mkdir", Targets: []audit.Target{{Kind: "path", Value: `c:/Var/lib`, Canonical: `C:\var\lib`}}},
		Decision: &audit.Decision{Effect: audit.EffectDeny, Mode: "LogOnly", Reason: "no rule"},
	}
	for text, want := range map[string]bool{
		"":                                       true,
		"  \t ":                                  true,
		"namespace=kube-system":                  true,
		"namespace=KUBE-SYSTEM":                  true,
		"namespace=kube":                         false,
		"namespace=kube*":                        true,
		"namespace!=kube*":                       false,
		"namespace=a namespace=kube-system":      true,
		"namespace=kube-system method=Stat":      false,
		"pod=kube-system/driver":                 true,
		"pod=driver pod!=other":                  true,
		`program="C:\Program Files\a ""b"".exe"`: true,
		`program="a ""b"".exe"`:                  true,
		`reason="no rule"`:                       true,
		`reason=""`:                              false,
		`image=`:                                 true,
		`image=""`:                               true,
		`image!=`:                                false,
		"decision=logonly effect=deny":           true,
		"decision=deny":                          false,
		"seq=7 stage=end":                        true,
		"seq=8-":                                 false,
		"seq=-7":                                 true,
		"seq!=1-6":                               true,
		`path=C:\VAR`:                            true,
		`path=C:/var/lib/`:                       true,
		`path=C:\va`:                             false,
		`path=C:\var\lib\x`:                      false,
		`path=C:\`:                               true,
		`path=D:\`:                               false,
		"since=today until=now":                  false, // until is the first moment that is not wanted
		"since=today until=2026-03-02":           true,
		"since=now":                              true,
		"bundle=1-":                              false,
	} {
		var f Filter
		if err := f.Parse(text, noon); err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if got := f.Match(&e); got != want {
			t.Errorf("%q fits: %t, want %t", text, got, want)
		}
	}
}

func TestTermsThatAreNoneAreRefusedWithTheirPlace(t *testing.T) {
	for text, column := range map[string]int{
		"namespace":                10,
		"namespace ":               10,
		"=x":                       1,
		"!=x":                      1,
		"Namespace=x":              1,
		"foo=1":                    1,
		"rule=x  foo=1":            9,
		"seq=seq":                  5,
		"seq=":                     5,
		"seq=-":                    5,
		"seq=1-x":                  7,
		"seq=5-4":                  7,
		"seq=1-2-3":                7,
		"seq=-1-":                  6,
		"seq=99999999999999999999": 5,
		`rule="x`:                  6,
		`rule="x"y`:                9,
		`rule=x"y"`:                7,
		"since=soon":               7,
		`since="2x"`:               9,
		"since=1h since=2h":        16,
		"since=1h until=2h":        16,
		"since!=1h":                8,
		"until=now until=now":      17,
		"path=":                    6,
		"namespace==x a":           11,
		`namespace="=x"`:           12,
		"rule==x":                  6,
		"path=relative":            6,
		"seq=0":                    5,
		"ä=1":                      1,
		"rule=ä foo=1":             8,
		"a && b":                   2,
	} {
		err := new(Filter).Parse(text, noon)
		var s *SyntaxError
		if !errors.As(err, &s) || s.Column != column || s.Text != text {
			t.Errorf("Parse(%q): %v, want a fault in column %d", text, err, column)
		}
	}
	if err := new(Filter).Parse(strings.Repeat("rule=x ", maxTerms+1), noon); err == nil {
		t.Error("any number of terms is taken")
	}
}

func TestPathsThatOnlyBeginAlikeAreOthers(t *testing.T) {
	for _, c := range []struct {
		path, directory string
		want            bool
	}{
		{`C:\var\lib\kubelet`, `C:\var\lib\kubelet`, true},
		{`C:\var\lib\kubelet\pods`, `C:\var\lib\kubelet`, true},
		{`c:/VAR/lib/kubelet/pods`, `C:\var\lib\kubelet\`, true},
		{`C:\var\lib\kubelet-evil`, `C:\var\lib\kubelet`, false},
		{`C:\var\lib`, `C:\var\lib\kubelet`, false},
		{`D:\x`, `C:\`, false},
		{`C:\x`, `C:`, true},
		{`C:`, `C:\`, false},
		{``, `C:\`, false},
		{`\\server\share\a`, `\\server\share`, true},
		{`\\server\share2\a`, `\\server\share`, false},
	} {
		if got := below(c.path, c.directory); got != c.want {
			t.Errorf("below(%q, %q) = %t", c.path, c.directory, got)
		}
	}
}

func TestStarsStandForAnything(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"a*", "a", true}, {"a*a", "a", false}, {"a*a", "aa", true}, {"*b*", "abc", true}, {"*b*", "ac", false},
		{"a*b*c", "a-b-c", true}, {"a*b*c", "a-c-b", false}, {"**", "x", true}, {"A", "a", true}, {"", "a", false}, {"?", "a", false},
	} {
		if got := pattern(c.pattern)(c.text); got != c.want {
			t.Errorf("%q fits %q: %t", c.pattern, c.text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"namespace=x", `rule="a ""b""" seq=1-2`, "since=2h path!=C:\\x", "a=b=c", `rule="`, "id!="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var filter Filter
		err := filter.Parse(text, noon)
		var s *SyntaxError
		if err != nil && (!errors.As(err, &s) || s.Column < 1 || s.Column > len([]rune(text))+1) {
			t.Errorf("Parse(%q): %v", text, err)
		}
		filter.Match(&audit.Event{})
	})
}
