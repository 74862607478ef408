package policy

import (
	"strings"
	"testing"
)

// A module refused with the words of a built-in rule: the remedy that people read had nothing to do with the reason.
func TestAnAdditionSaysCodesOfItsOwn(t *testing.T) {
	const described = "# METADATA\n# title: t\n# custom:\n#   code: HOUSE1\n#   severity: high\n#   remedy: r\n"
	add := func(rule string) string { return "package pipeguard.admission\n\n" + rule + "\n" }
	house := add(described + `findings contains {"code": "HOUSE1", "effect": "deny", "field": ""} if input.namespace == "house"`)
	for name, c := range map[string]struct {
		rule     string
		problem  string // when it is compiled
		fault    string // when it is evaluated
		findings int
	}{
		"its own":                   {`findings contains {"code": "X1", "effect": "deny", "field": ""} if input.namespace == "shop"`, "", "", 1},
		"that of the base":          {`findings contains {"code": "PG001", "effect": "deny", "field": ""} if input.namespace == "shop"`, "the code PG001, which is not this module's", "", 0},
		"that of the engine":        {`findings contains {"code": "PG999", "effect": "deny", "field": ""} if input.namespace == "shop"`, "the code PG999", "", 0},
		"that of another module":    {`findings contains {"code": "HOUSE1", "effect": "deny", "field": ""} if input.namespace == "shop"`, "the code HOUSE1", "", 0},
		"like one of the base":      {`findings contains {"code": "PGX", "effect": "deny", "field": ""} if input.namespace == "shop"`, "the code PGX", "", 0},
		"in advice":                 {`advice contains {"code": "PG003", "effect": "warn", "field": ""} if input.namespace == "shop"`, "the code PG003", "", 0},
		"put together":              {`findings contains {"code": concat("", ["PG", n]), "effect": "deny", "field": ""} if n := concat("", ["0", input.digits])`, "", "the code is not the module's own: PG001", 0},
		"of another, put together":  {`findings contains {"code": concat("", ["HOUSE", n]), "effect": "deny", "field": ""} if n := input.digit`, "", "the code is not the module's own: HOUSE1", 0},
		"a finding that is a value": {"f := {\"code\": concat(\"\", [\"PG\", \"001\"]), \"effect\": \"deny\", \"field\": \"\"} if input.namespace == \"shop\"\n\nfindings contains f", "", "not the module's own: PG001", 0},
		"malformed":                 {`findings contains {"code": "PG001 ", "effect": "deny", "field": ""} if input.namespace == "shop"`, `code "PG001 " of a finding`, "", 0},
		"malformed, put together":   {`findings contains {"code": concat(" ", ["PG001", n]), "effect": "deny", "field": ""} if n := input.digit`, "", `code "PG001 1" of a finding`, 0},
		"with a key too many":       {`findings contains {"code": "X1", "effect": "deny", "feild": ""} if input.namespace == "shop"`, "", `unknown key "feild" in a finding`, 0},
		"malformed, in advice":      {`advice contains {"code": concat(" ", ["PG001", n]), "effect": "warn", "field": ""} if n := input.digit`, "", "", 1},
		"described as one":          {strings.ReplaceAll(described, "HOUSE1", "PG777") + `findings contains {"code": "PG777", "effect": "deny", "field": ""} if input.namespace == "shop"`, "code PG777 is for the built-in policies", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			base := Modules{Files: map[string]string{"base.rego": "package pipeguard.admission\n\n" + strings.ReplaceAll(described, "HOUSE1", "PG001") +
				"findings contains {\"code\": \"PG001\", \"effect\": \"deny\", \"field\": \"\"} if input.namespace == \"never\"\n\n" +
				"decision := {\"allowed\": count(findings) == 0, \"findings\": findings}\n"}}
			m := base.with(map[string]string{"house/house.rego": house, "shop/shop.rego": add(c.rule), "shop/shop_test.rego": "package shop_test\n\ntest_x if 1 == 1\n"})
			m.Base, m.Owner = &base, func(file string) string { return strings.Split(file, "/")[0] }
			e, err := New(Options{Timeout: patient.Timeout, BaseTested: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Activate(t.Context(), m)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := e.Decide(t.Context(), value(t, map[string]any{"namespace": "shop", "digits": "01", "digit": "1"}))
			if c.fault != "" {
				if reasonOf(err) != ReasonType || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("got %+v, %v", d, err)
				}
				return
			}
			if len(d.Findings) != c.findings || err != nil {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

// A module with many findings of a code that sorts before PG001 had the built-in refusal out of the message, the audit record and the code that decided.
func TestFindingsOfTheBaseComeFirst(t *testing.T) {
	base := Modules{Files: map[string]string{"base.rego": `package pipeguard.admission

# METADATA
# title: t
# custom:
#   code: HOUSE1
#   severity: high
#   remedy: r
findings contains {"code": "HOUSE1", "effect": "deny", "field": "z"} if input.namespace

findings contains {"code": "PG001", "effect": "deny", "field": "z"} if input.namespace

advice contains {"code": "PG009", "effect": "warn", "field": "z"} if input.namespace

decision := {"allowed": count(findings) == 0, "findings": findings}
`}}
	m := base.with(map[string]string{"a/a.rego": `package pipeguard.admission

findings contains {"code": "AAA1", "effect": "deny", "field": sprintf("f%d", [n])} if some n in input.n

advice contains {"code": "AAA2", "effect": "warn", "field": sprintf("f%d", [n])} if some n in input.n
`, "a/a_test.rego": "package a_test\n\ntest_x if 1 == 1\n"})
	m.Base, m.Owner = &base, func(file string) string { return strings.Split(file, "/")[0] }
	e, err := New(Options{Timeout: patient.Timeout, BaseTested: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Activate(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var n []any
	for i := range 200 {
		n = append(n, i)
	}
	d, err := e.Decide(t.Context(), value(t, map[string]any{"namespace": "shop", "n": n}))
	if err != nil || len(d.Findings) != 2+200+1+200 {
		t.Fatalf("%d findings, %v", len(d.Findings), err)
	}
	for at, want := range map[int]string{0: "HOUSE1", 1: "PG001", 2: "AAA1", 201: "AAA1", 202: "PG009", 203: "AAA2"} {
		if got := d.Findings[at].Code; got != want {
			t.Errorf("finding %d is %s, want %s", at, got, want)
		}
	}
}
