package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func advising(rule string) Modules {
	return small().with(map[string]string{"advice.rego": "package pipeguard.admission\n\nadvice contains " + rule + "\n"})
}

func TestAdviceNeverDenies(t *testing.T) {
	failed := func(why string) []Finding {
		return []Finding{{Code: CodeAdviceFailed, Effect: EffectAudit, Message: "advice could not be evaluated: " + why}}
	}
	leftOut := func(why string) []Finding {
		return []Finding{{Code: CodeAdviceFailed, Effect: EffectAudit, Message: "advice was left out: " + why}}
	}
	for name, c := range map[string]struct {
		rule string
		want []Finding
	}{
		"it warns":              {`{"code": "X1", "effect": "warn"}`, []Finding{{Code: "X1", Effect: EffectWarn}}},
		"it has nothing to say": {`{"code": "X1", "effect": "warn"} if input.nothing`, []Finding{}},
		"a builtin fails":       {`{"code": "X1", "effect": "warn"} if to_number(input.n) == 1`, failed("builtin")},
		"it denies":             {`{"code": "X1", "effect": "deny"}`, leftOut("finding X1 denies, which advice cannot")},
		"its effect is unknown": {`{"code": "X1", "effect": "block"}`, leftOut(`effect "block" of finding X1: want deny, warn or audit`)},
		"it is not a finding":   {`"X1"`, leftOut("a finding is a string, want an object")},
	} {
		t.Run(name, func(t *testing.T) {
			e := activated(t, advising(c.rule), patient)
			d, err := e.Decide(t.Context(), value(t, map[string]any{"n": "x"}))
			if err != nil || !d.Allowed {
				t.Fatalf("got %+v, %v", d, err)
			}
			if diff := cmp.Diff(c.want, d.Findings); diff != "" {
				t.Error(diff)
			}
			d, err = e.Decide(t.Context(), value(t, map[string]any{"n": "x", "bad": true}))
			if err != nil || d.Allowed || d.Findings[0].Code != "T001" {
				t.Errorf("it lifted a denial: got %+v, %v", d, err)
			}
		})
	}
}

// sizable is an input with a list to count by, and with a text that is too long for a message.
func sizable() map[string]any {
	return map[string]any{"n": make([]int, 2000), "long": strings.Repeat("x", maxMessage+1)}
}

// advises returns what the base's rule PG001 and modules with these rules advise about an input.
func advises(t *testing.T, input any, rules ...string) []Finding {
	t.Helper()
	files := map[string]string{"base.rego": "package pipeguard.admission\n\nadvice contains {\"code\": \"PG001\", \"effect\": \"warn\"}\n"}
	for i, rule := range rules {
		files[fmt.Sprintf("m%d.rego", i)] = "package pipeguard.admission\n\nadvice contains " + rule + "\n"
	}
	d, err := activated(t, small().with(files), patient).Decide(t.Context(), value(t, input))
	if err != nil || !d.Allowed {
		t.Fatalf("got %+v, %v", d, err)
	}
	return d.Findings
}

func TestAFaultInAdviceTakesNothingElseAway(t *testing.T) {
	of := func(code string, effect Effect, message string) Finding {
		return Finding{Code: code, Effect: effect, Message: message}
	}
	leftOut := func(why string) Finding { return of(CodeAdviceFailed, EffectAudit, "advice was left out: "+why) }
	base := of("PG001", EffectWarn, "")
	for name, c := range map[string]struct {
		rules []string
		want  []Finding
	}{
		"one denies":              {[]string{`{"code": "X1", "effect": "deny"}`, `{"code": "X2", "effect": "audit"}`}, []Finding{base, of("X2", EffectAudit, ""), leftOut("finding X1 denies, which advice cannot")}},
		"a code denies and warns": {[]string{`{"code": "X1", "effect": e} if some e in ["warn", "deny"]`}, []Finding{base, of("X1", EffectWarn, ""), leftOut("finding X1 denies, which advice cannot")}},
		"a message is too long":   {[]string{`{"code": "X1", "effect": "warn", "message": input.long}`}, []Finding{base, leftOut("finding X1: field has at most 1024 bytes, message 2048")}},
		"a misspelt key":          {[]string{`{"code": "X1", "effect": "warn", "feild": "x"}`}, []Finding{base, leftOut(`unknown key "feild" in a finding`)}},
		"no code":                 {[]string{`{"effect": "warn"}`}, []Finding{base, leftOut(`code "" of a finding: want ` + codeForm)}},
		"the same fault often":    {[]string{`n if { some n, _ in input.n; n < 5 }`, `{"code": "X2", "effect": "warn"}`}, []Finding{base, of("X2", EffectWarn, ""), leftOut("a finding is a number, want an object (5 elements)")}},
		"two faults":              {[]string{`7`, `{"code": "X1", "effect": "deny"}`}, []Finding{base, leftOut("a finding is a number, want an object"), leftOut("finding X1 denies, which advice cannot")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, advises(t, sizable(), c.rules...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFaultsOfAdviceAreToldWithinBounds(t *testing.T) {
	got := advises(t, sizable(), `{"code": sprintf("X%d", [n]), "effect": "deny"} if { some n, _ in input.n; n < 100 }`)
	if len(got) != 1+maxAdviceFaults+1 || got[0].Code != "PG001" {
		t.Fatalf("%d findings: %+v", len(got), got)
	}
	if last := got[len(got)-1]; last.Message != fmt.Sprintf("advice was left out: further faults (%d elements)", 100-maxAdviceFaults) {
		t.Errorf("%+v", last)
	}
}

func TestOfTooMuchAdviceEachCodeKeepsItsFirst(t *testing.T) {
	many := func(code string, n int) string {
		return fmt.Sprintf(`{"code": "%s", "effect": "audit", "field": sprintf("f%%d", [10001 + n])} if { some n, _ in input.n; n < %d }`, code, n)
	}
	for name, c := range map[string]struct {
		rules []string
		want  map[string]int
		told  string
	}{
		"exactly enough": {[]string{many("X1", 1023)}, map[string]int{"PG001": 1, "X1": 1023}, ""},
		"one too many":   {[]string{many("X1", 1024)}, map[string]int{"PG001": 1, "X1": 1023, CodeAdviceFailed: 1}, "1 findings, since at most 1024 are taken: X1 (1)"},
		"two of three":   {[]string{many("X1", 2000), many("X2", 10), many("X3", 1500)}, map[string]int{"PG001": 1, "X1": 507, "X2": 10, "X3": 506, CodeAdviceFailed: 1}, "2487 findings, since at most 1024 are taken: X1 (1493), X3 (994)"},
		"codes of one":   {[]string{`{"code": sprintf("X%d", [10001 + n]), "effect": "audit"} if { some n, _ in input.n; n < 1033 }`}, map[string]int{"PG001": 1, CodeAdviceFailed: 1}, "10 findings, since at most 1024 are taken: X11024 (1), X11025 (1), X11026 (1), X11027 (1), X11028 (1), X11029 (1), X11030 (1), X11031 (1) and 2 more codes"},
	} {
		t.Run(name, func(t *testing.T) {
			count := map[string]int{}
			for _, f := range advises(t, sizable(), c.rules...) {
				count[f.Code]++
				if f.Field != "" && f.Field != fmt.Sprintf("f%d", 10000+count[f.Code]) {
					t.Fatalf("%s is the %d. of %s", f.Field, count[f.Code], f.Code)
				}
				if f.Code == CodeAdviceFailed && f.Message != "advice was left out: "+c.told {
					t.Error(f.Message)
				}
			}
			if name == "codes of one" {
				if len(count) != 1024+1 || count["X11023"] != 1 || count["X11024"] != 0 {
					t.Errorf("%d codes", len(count))
				}
				return
			}
			if diff := cmp.Diff(c.want, count); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Findings of the decision are taken as a whole or not at all, whatever advice may lose.
func TestAFaultyDenialStillRefuses(t *testing.T) {
	for name, rule := range map[string]string{
		"an unknown effect": `{"code": "X1", "effect": "Deny"}`,
		"no finding":        `"deny"`,
		"a long message":    `{"code": "X1", "effect": "deny", "message": input.long}`,
	} {
		t.Run(name, func(t *testing.T) {
			m := advising(`{"code": "X2", "effect": "warn"}`).with(map[string]string{"f.rego": "package pipeguard.admission\n\nfindings contains " + rule + "\n"})
			d, err := activated(t, m, patient).Decide(t.Context(), value(t, sizable()))
			if reasonOf(err) != ReasonType || d.Allowed {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

// Many findings refuse nothing that they do not deny, and a denial among them refuses wherever it stands.
func TestOfTooManyFindingsThoseThatDenyAreTold(t *testing.T) {
	const all = `{"code": "A1", "effect": "audit", "field": sprintf("f%d", [10001 + n])} if { some n, _ in input.n }`
	for name, c := range map[string]struct {
		rules   []string
		allowed bool
		want    map[string]int
		untold  int
		told    string
	}{
		"none denies":     {[]string{all}, true, map[string]int{"A1": 1024, CodeAdviceFailed: 1}, 0, "976 findings, since at most 1024 are taken: A1 (976)"},
		"the last denies": {[]string{all, `{"code": "Z1", "effect": "deny"}`}, false, map[string]int{"A1": 1023, "Z1": 1, CodeAdviceFailed: 1}, 0, "977 findings, since at most 1024 are taken: A1 (977)"},
		"all deny": {
			[]string{`{"code": "D1", "effect": "deny", "field": sprintf("f%d", [10001 + n])} if { some n, _ in input.n }`, `{"code": "A1", "effect": "audit"}`, `{"code": "Z1", "effect": "deny"}`},
			false, map[string]int{"D1": 1023, "Z1": 1, CodeAdviceFailed: 1}, 977, "978 findings, since at most 1024 are taken: A1 (1), D1 (977)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := small()
			files := map[string]string{"small.rego": strings.Replace(base.Files["small.rego"], "count(findings)", `count({f | some f in findings; f.effect == "deny"})`, 1)}
			for i, rule := range c.rules {
				files[fmt.Sprintf("m%d.rego", i)] = "package pipeguard.admission\n\nfindings contains " + rule + "\n"
			}
			d, err := activated(t, base.with(files), patient).Decide(t.Context(), value(t, sizable()))
			if err != nil || d.Allowed != c.allowed || len(d.Untold) != c.untold {
				t.Fatalf("allowed %t, %d untold, %v", d.Allowed, len(d.Untold), err)
			}
			count := map[string]int{}
			for _, f := range d.Findings {
				count[f.Code]++
			}
			if diff := cmp.Diff(c.want, count); diff != "" {
				t.Error(diff)
			}
			if last := d.Findings[len(d.Findings)-1]; last.Message != "findings were left out: "+c.told {
				t.Error(last.Message)
			}
			for _, f := range d.Untold {
				if f.Effect != EffectDeny || slices.Contains(d.Findings, f) {
					t.Fatalf("%+v is untold", f)
				}
			}
		})
	}
}

func TestEndlessAdviceDoesNotDeny(t *testing.T) {
	rule := `{"code": "X1", "effect": "warn"} if ` + strings.TrimPrefix(strings.Split(endless, ", \"findings\"")[0], `{"allowed": `)
	e := activated(t, advising(rule), Options{Timeout: 200 * time.Millisecond})
	d, err := e.Decide(t.Context(), value(t, map[string]any{"l": make([]int, 1000)}))
	if err != nil || !d.Allowed || len(d.Findings) != 1 || d.Findings[0].Message != "advice could not be evaluated: timeout" {
		t.Fatalf("got %+v, %v", d, err)
	}
}

// The same failure in findings takes the whole set away, and with it a rule that may have denied.
func TestAnErrorInFindingsRefuses(t *testing.T) {
	m := small().with(map[string]string{"f.rego": "package pipeguard.admission\n\nfindings contains {\"code\": \"X1\", \"effect\": \"audit\"} if to_number(input.n) == 1\n"})
	e := activated(t, m, patient)
	if d, err := e.Decide(t.Context(), value(t, map[string]any{"n": "x"})); reasonOf(err) != ReasonBuiltin || d.Allowed {
		t.Fatalf("got %+v, %v", d, err)
	}
}
