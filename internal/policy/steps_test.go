package policy

import (
	"regexp/syntax"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Nothing ends a call of one of OPA's functions before it is done, so one that takes minutes must not begin.
func TestACallOfTooManyStepsIsRefusedBeforeItBegins(t *testing.T) {
	text := func(once string) string { return chain(`"`+once+`"`, `concat("", [P, P])`, 15) } // 32,768 times
	for name, c := range map[string]struct {
		module, call string
		ends         bool
	}{
		"a pattern with repetitions":          {text("aaaaaaaaaaaaaaaa"), "regex.match(`(a{0,600}a{0,600})b`, s15)", false},
		"a long pattern without":              {text("aaaaaaaaaaaaaaaa"), "regex.match(`" + strings.Repeat("a?", 500) + "b`, s15)", false},
		"find_n":                              {text("aaaaaaaaaaaaaaaa"), "count(regex.find_n(`a{0,900}b`, s15, -1)) == 0", false},
		"split":                               {text("aaaaaaaaaaaaaaaa"), "count(regex.split(`a{0,900}b`, s15)) == 1", false},
		"a pattern that is a text":            {text("aaaaaaaaaaaaaaaa"), "regex.is_valid(s15)", false},
		"characters that are trimmed":         {text("éééé") + "\nw := concat(\"\", [s15, \"è\"])\n", "trim(s15, w) == \"\"", false},
		"characters on the left":              {text("éééé"), "trim_left(s15, s15) == \"\"", false},
		"characters on the right":             {text("éééé"), "trim_right(s15, s15) == \"\"", false},
		"a text in another":                   {text("éééé") + "\nw := concat(\"\", [s14, \"a\"])\n", "indexof(s15, w) == -1", false},
		"a list in another":                   {chain("[1, 1, 1, 1]", `array.concat(P, P)`, 13) + "\nw := array.concat(s12, [2])\n", "object.subset(s13, w) == false", false},
		"a number of many digits":             {text("9999999999999999"), `to_number(concat("", ["0.", s15])) > 0`, false},
		"one of JSON":                         {text("9999999999999999"), `json.unmarshal(concat("", ["{\"a\": [", s15, "]}"])).a[0] > 0`, false},
		"a number of some digits":             {text("9"), `to_number(concat("", ["0.", s8])) > 0`, true},
		"a text of digits in JSON":            {text(`9\\\"9\\\\`), `count(json.unmarshal(concat("", ["[\"", s13, "\", 1]"]))) == 2`, true},
		"a number behind a text of JSON":      {text("9"), `count(json.unmarshal(concat("", ["[\"\\\\\", ", s10, "]"]))) == 2`, false},
		"many numbers of JSON":                {text("9, 9, 9, "), `count(json.unmarshal(concat("", ["[", s13, "0]"]))) > 0`, true},
		"a simple pattern in a long text":     {text("aaaaaaaaaaaaaaaa"), "not regex.match(`^b`, s15)", true},
		"repetitions in a path":               {text("a"), "not regex.match(`^[a-z]{1,63}(/[a-z]{1,63}){0,4}$`, substring(s15, 0, 4000))", true},
		"a short text in a long one":          {text("éééé"), "indexof(s15, \"b\") == -1", true},
		"an object with many members in both": {"package pipeguard.admission\n\ns := {sprintf(\"%d%d%d%d\", [a, b, c, d]): 1 |\n\tsome a in l\n\tsome b in l\n\tsome c in l\n\tsome d in l\n}\n\nl := [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", "object.subset(s, s)", true},
	} {
		t.Run(name, func(t *testing.T) {
			m := deciding(`{"allowed": count([1 | grown]) == 1, "findings": []}`).with(map[string]string{"s.rego": c.module + "\ngrown if " + c.call + "\n"})
			d, err := activated(t, m, patient).Decide(t.Context(), value(t, map[string]any{}))
			switch {
			case c.ends && (err != nil || !d.Allowed):
				t.Errorf("got %+v, %v", d, err)
			case !c.ends && (reasonOf(err) != ReasonTimeout || !strings.Contains(err.Error(), "steps") || d.Allowed):
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

func TestPatternsOfLargeProgramsAreRefusedWhenTheyAreLoaded(t *testing.T) {
	for pattern, ok := range map[string]bool{
		`^[a-z]{1,63}(\.[a-z0-9-]{1,63}){0,9}$`:      true,
		strings.Repeat(`a{0,1000}`, 6):               false,
		`(a{0,1000}b{0,1000})`:                       true,
		`(?i)` + strings.Repeat(`(a*|b+|[^c]?)`, 70): true,
	} {
		problems := Validate(small().with(map[string]string{"r.rego": "package pipeguard.admission\n\nx if regex.match(`" + pattern + "`, input.name)\n"}), Options{})
		if refused := len(problems) == 1 && strings.Contains(problems[0].Message, "instructions"); refused == ok || ok && len(problems) > 0 {
			t.Errorf("%s: %v", pattern, problems)
		}
	}
}

func FuzzAPatternHasNoMoreInstructionsThanItsStepsSay(f *testing.F) {
	for _, seed := range []string{"", "a", "()", "a*", "(a|b)*?", `\pL`, "(?i:k)", "[^a-z]", "a{3}", "||||", "(?P<n>a)", "()*", "(?:a|b){2,5}c{0,3}d{4,}", "((x{2}){3})+"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if len(pattern) > maxRegex || instructions(pattern) > maxInstructions {
			t.Skip()
		}
		const text = 100
		got := matching([]*ast.Term{ast.StringTerm(pattern), ast.StringTerm(strings.Repeat("a", text))})
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Skip()
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Skip()
		}
		if n := len(program.Inst); int64(n*text) > got || n > instructions(pattern) {
			t.Errorf("%q has %d instructions, at most %d are expected, and %d steps are counted for %d bytes", pattern, n, instructions(pattern), got, text)
		}
	})
}

// The time for all matches may be that for one, as often as there are matches: a minute for the text of 128 KiB.
func TestLookingForAllMatchesEndsWithTheEvaluation(t *testing.T) {
	WithoutRaceDetector(t)
	long := chain(`"aaaaaaaaaaaaaaaa"`, `concat("", [P, P])`, 13)
	for call, ends := range map[string]bool{
		"count(regex.find_n(`a.*b|a`, s13, -1)) == 131072":                               false,
		"count(regex.find_n(`a.*b|a`, s13, 100000)) == 100000":                           false,
		"count(regex.split(`a.*b|a`, s13)) == 131073":                                    false,
		"count(regex.find_n(`a.*b|a`, s13, 3)) == 3":                                     true,
		"count(regex.find_n(`a.*b|a`, s13, 0)) == 0":                                     true,
		"count(regex.find_n(`b`, s13, -1)) == 0":                                         true,
		"count(regex.split(`\\s+`, replace(s8, \"a\", \"a \"))) == 4097":                 true,
		"regex.split(`,\\s*`, \"a, b,c\") == [\"a\", \"b\", \"c\"]":                      true,
		"count(regex.find_n(`[a-z]+@[a-z]+|[a-z]`, substring(s8, 0, 1000), -1)) == 1000": true,
	} {
		m := deciding(`{"allowed": count([1 | grown]) == 1, "findings": []}`).with(map[string]string{"s.rego": long + "\ngrown if " + call + "\n"})
		d, err := activated(t, m, Options{Timeout: time.Second}).Decide(t.Context(), value(t, map[string]any{}))
		switch {
		case ends && (err != nil || !d.Allowed):
			t.Errorf("%s: %+v, %v", call, d, err)
		case !ends && (reasonOf(err) != ReasonTimeout || !strings.Contains(err.Error(), "matches of a pattern") || d.Allowed):
			t.Errorf("%s: %+v, %v", call, d, err)
		}
	}
}
