package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

func TestModulesCannotReachOutOrAmplify(t *testing.T) {
	for expression, want := range map[string]string{
		`http.send({"method": "get", "url": "http://127.0.0.1:1"})`:                "function http.send is not available to policies",
		`net.lookup_ip_addr("localhost")`:                                          "function net.lookup_ip_addr is not available",
		`net.cidr_expand("10.0.0.0/8")`:                                            "function net.cidr_expand is not available",
		`opa.runtime()`:                                                            "function opa.runtime is not available",
		`time.now_ns()`:                                                            "function time.now_ns is not available",
		`rand.intn("x", 10)`:                                                       "function rand.intn is not available",
		`uuid.rfc4122("x")`:                                                        "function uuid.rfc4122 is not available",
		`trace("x")`:                                                               "function trace is not available",
		`io.jwt.encode_sign({}, {}, {})`:                                           "function io.jwt.encode_sign is not available",
		`crypto.hmac.sha256("a", "b")`:                                             "function crypto.hmac.sha256 is not available",
		`providers.aws.sign_req({}, {}, 1)`:                                        "function providers.aws.sign_req is not available",
		`numbers.range(1, 1000000000)`:                                             "function numbers.range is not available",
		`bits.lsh(1, 10000000000)`:                                                 "function bits.lsh is not available",
		`regex.replace("aaaa", "a", "bbbb")`:                                       "function regex.replace is not available",
		`json.patch({}, [])`:                                                       "function json.patch is not available",
		`yaml.unmarshal("a: &a [*a]")`:                                             "function yaml.unmarshal is not available",
		`glob.match("*a*a*a*", [], "aaaa")`:                                        "function glob.match is not available",
		`json.match_schema({}, {"$ref": "http://127.0.0.1:1/"})`:                   "function json.match_schema is not available",
		`internal.test_case([1])`:                                                  "function internal.test_case is not available",
		`no.such_function(1)`:                                                      "rego_type_error: undefined function no.such_function",
		`sprintf("%1000000d", [1])`:                                                "without width, precision or index",
		`sprintf("%*d", [1000000, 1])`:                                             "without width, precision or index",
		`sprintf("%.1000000f", [1])`:                                               "without width, precision or index",
		`sprintf("%[1]d%[1]d", [1])`:                                               "without width, precision or index",
		`sprintf("%", [1])`:                                                        "without width, precision or index",
		`sprintf(input.format, [1])`:                                               "the first operand of sprintf must be a constant",
		`[1 | sprintf(input.format, [1], x); x == "a"]`:                            "the first operand of sprintf must be a constant",
		`regex.match(input.pattern, "a")`:                                          "the first operand of regex.match must be a constant",
		`regex.split(input.pattern, "a")`:                                          "the first operand of regex.split must be a constant",
		`[1 | some p in {"a"}; count(regex.find_n(p, "a", 1)) > 0]`:                "the first operand of regex.find_n must be a constant",
		`regex.match("` + strings.Repeat("x", 1025) + `", "a")`:                    "the pattern of regex.match has more than 1024 bytes",
		`[1 | f("a", "b") with f as regex.match]`:                                  "regex.match cannot stand in for another function",
		`concat(input.separator, ["a", "b"])`:                                      "the first operand of concat must be a constant",
		`concat("` + strings.Repeat("x", 65) + `", ["a", "b"])`:                    "the separator of concat must be short",
		`[1 | f("%1000d", [1]) == "a" with data.pipeguard.admission.f as sprintf]`: "sprintf cannot stand in for another function",
		`[1 | f("%1000d", [1]) == "a" with f as sprintf]`:                          "sprintf cannot stand in for another function",
	} {
		m := small().with(map[string]string{"b.rego": "package pipeguard.admission\n\nf(x, y) := x if y\n\nx := " + expression + "\n"})
		problems := Validate(m, Options{})
		if len(problems) == 0 {
			t.Errorf("%s: it compiles", expression)
			continue
		}
		if text := problems[0].String(); !strings.Contains(text, want) || !strings.HasPrefix(text, "b.rego:5:") {
			t.Errorf("%s: got %q, want it to contain %q", expression, text, want)
		}
	}
}

func TestPrintIsErased(t *testing.T) {
	m := small().with(map[string]string{"b.rego": "package pipeguard.admission\n\nx if print(input.secret)\n"})
	p, problems := compile(t.Context(), m, patientOptions(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, r := range p.compiler.Modules["b.rego"].Rules {
		if text := r.String(); strings.Contains(text, "print") || strings.Contains(text, "secret") {
			t.Errorf("it is still there: %s", text)
		}
	}
}

func TestTestsHaveNoMoreFunctionsThanPolicies(t *testing.T) {
	for _, expression := range []string{`http.send({})`, `time.now_ns()`, `sprintf("%9d", [1])`, `opa.runtime()`} {
		m := small().with(map[string]string{"b_test.rego": "package b_test\n\ntest_b if " + expression + "\n"})
		e, err := New(patient)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = e.Activate(t.Context(), m); err == nil || !strings.Contains(err.Error(), "b_test.rego:3:") {
			t.Errorf("%s: got %v", expression, err)
		}
	}
}

func TestTestsAreValidatedAsTheyAreActivated(t *testing.T) {
	for name, text := range map[string]string{
		"an unused import":      "import data.pipeguard.admission\n\ntest_b if true",
		"an undefined function": "test_b if nobody.knows(1)",
		"an unsafe variable":    "test_b if x > 1",
		"a type error":          `test_b if count(1) == 1`,
		"an absent builtin":     "test_b if http.send({})",
	} {
		t.Run(name, func(t *testing.T) {
			m := small().with(map[string]string{"b_test.rego": "package b_test\n\n" + text + "\n"})
			if problems := Validate(m, patient); len(problems) == 0 || problems[0].File != "b_test.rego" {
				t.Errorf("problems %v", problems)
			}
		})
	}
	if problems := Validate(small().with(map[string]string{"b_test.rego": "package b_test\n\ntest_b if false\n"}), patient); len(problems) > 0 {
		t.Errorf("a test was run: %v", problems)
	}
}

func TestEveryAllowedBuiltinExists(t *testing.T) {
	c := capabilities()
	if len(c.Builtins) != len(allowedBuiltins) {
		t.Errorf("%d of %d allowed builtins exist", len(c.Builtins), len(allowedBuiltins))
	}
	for _, b := range c.Builtins {
		if b.IsNondeterministic() || b.IsDeprecated() {
			t.Errorf("%s is not deterministic, or deprecated", b.Name)
		}
	}
	if c.AllowNet == nil || len(c.AllowNet) != 0 || len(c.FutureKeywords) != 0 {
		t.Errorf("net %v, keywords %v", c.AllowNet, c.FutureKeywords)
	}
}

func TestRemoteSchemasAreNotFetched(t *testing.T) {
	m := small().with(map[string]string{"b.rego": "package pipeguard.admission\n\n# METADATA\n# schemas:\n#   - input: {$ref: \"http://127.0.0.1:1/schema.json\"}\nx if input.y\n"})
	for _, p := range Validate(m, Options{}) {
		if strings.Contains(p.Message, "connection") || strings.Contains(p.Message, "dial") {
			t.Fatalf("it was asked for: %s", p)
		}
	}
}

func TestModulesCannotDefineReservedDocuments(t *testing.T) {
	for _, text := range []string{
		"package system.authz\n\nallow := true\n",
		"package system\n\nx := 1\n",
		"package system.bundles[\"x\"]\n\nx := 1\n",
		"package pipeguard.parameters\n\nrequirement := \"x\"\n",
		"package pipeguard.parameters\n",
		"package pipeguard.parameters.allowedNamespaces\n\nshop := null\n",
		"package pipeguard[\"parameters\"]\n\nx := 1\n",
		"package pipeguard\n\nparameters := {\"requirement\": \"x\"}\n",
		"package pipeguard\n\nparameters.allowedNamespaces.shop := null\n",
		"package pipeguard\n\nparameters[x] := 1 if some x in input.names\n",
		"package pipeguard\n\nparameters contains 1\n",
		"package pipeguard\n\ndefault parameters := {}\n",
	} {
		for _, data := range []map[string]any{nil, parameters()} {
			problems := Validate(small().with(map[string]string{"b.rego": text}).WithData(data), Options{})
			if len(problems) == 0 || problems[0].Code != CodeReserved || problems[0].File != "b.rego" {
				t.Errorf("%q: got %v", text, problems)
			}
		}
	}
	for _, text := range []string{"package systems\n\nx := 1\n", "package pipeguard.lib\n\nparameters := 1\n", "package lib.system\n\nx := 1\n"} {
		if problems := Validate(small().with(map[string]string{"b.rego": text}), Options{}); len(problems) != 0 {
			t.Errorf("%q: got %v", text, problems)
		}
	}
}

// endless is a policy that computes for hours.
const endless = `{"allowed": count([1 | some a in input.l; some b in input.l; some c in input.l; some d in input.l; a + b + c + d == 0-1]) == 0, "findings": []}`

func TestDecideReturnsSoonFromAnEndlessPolicy(t *testing.T) {
	e := activated(t, deciding(endless), Options{Timeout: 50 * time.Millisecond})
	list := make([]int, 1000)
	input := value(t, map[string]any{"l": list})
	start := time.Now()
	d, err := e.Decide(t.Context(), input)
	took := time.Since(start)
	if reasonOf(err) != ReasonTimeout || d.Allowed {
		t.Fatalf("got %+v, %v", d, err)
	}
	if took < 50*time.Millisecond || took > 2*time.Second { // the upper bound leaves room for a loaded machine and the race detector
		t.Errorf("it took %v", took)
	}
	t.Logf("a time-out of 50ms ended the evaluation after %v", took)
}

func TestActivateEndsForAnEndlessTest(t *testing.T) {
	l := strings.TrimSuffix(strings.Repeat("1, ", 1000), ", ")
	m := small().with(map[string]string{"b_test.rego": "package b_test\n\nl := [" + l + "]\n\ntest_b if {\n\tsome a in l\n\tsome b in l\n\tsome c in l\n\tsome d in l\n\ta + b + c + d == 0\n}\n"})
	e, err := New(Options{TestTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Activate(t.Context(), m)
	if !ranOutOfTime(err) { // in the tests or, on a busy machine, before them
		t.Errorf("got %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "stopped after") && !strings.Contains(err.Error(), ", during b_test.test_b (b_test.rego:5)") {
		t.Errorf("the test that was stopped is not named: %v", err)
	}
}

func TestLimitsRefuseModulesBeforeTheyAreParsed(t *testing.T) {
	many := small()
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("m%03d.rego", i)] = "package pipeguard.admission\n"
	}
	big := "package pipeguard.admission\n\nx := \"" + strings.Repeat("x", 300<<10) + "\"\n"
	half := "package pipeguard.admission\n#" + strings.Repeat("x", 200<<10) + "\n"
	total := map[string]string{}
	for i := range 12 {
		total[fmt.Sprintf("m%02d.rego", i)] = half
	}
	for name, c := range map[string]struct {
		m    Modules
		want string
	}{
		"many modules":         {many.with(files), "302 modules, and at most 256"},
		"one large one":        {many.with(map[string]string{"big.rego": big}), "big.rego: limit: 307"},
		"large together":       {many.with(total), "bytes in all modules"},
		"deep brackets":        {many.with(map[string]string{"deep.rego": "package a\n\nx := " + strings.Repeat("[", 100000) + strings.Repeat("]", 100000)}), "deep.rego:3:206: limit: more than 200 brackets"},
		"deep objects":         {many.with(map[string]string{"deep.rego": "package a\n\nx := " + strings.Repeat(`{"a":`, 201) + "1" + strings.Repeat("}", 201)}), "more than 200 brackets"},
		"deep functions":       {many.with(map[string]string{"deep.rego": "package a\n\nx := " + strings.Repeat("count(", 201) + "1" + strings.Repeat(")", 201)}), "more than 200 brackets"},
		"a long chain of else": {many.with(map[string]string{"e.rego": "package a\n\nx := 1 if input.a\n" + strings.Repeat("else := 1 if input.a\n", 3)}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems := Validate(c.m, Options{})
			if c.want == "" {
				if len(problems) > 0 {
					t.Errorf("got %v", problems)
				}
				return
			}
			if len(problems) == 0 || !strings.Contains(problems[0].String(), c.want) {
				t.Errorf("got %v, want %q", problems, c.want)
			}
		})
	}
}

func TestASecondDecisionIsAConflict(t *testing.T) {
	refused := func(d Decision) error {
		if d.Allowed {
			return errors.New("it was allowed")
		}
		return nil
	}
	o := patient
	o.Checks = []Check{{Name: "canary", Input: map[string]any{"bad": true}, Want: refused}}
	for name, text := range map[string]string{
		"another decision":         "decision := {\"allowed\": true, \"findings\": []}\n",
		"a conditional decision":   "decision := {\"allowed\": true, \"findings\": []} if input.bad\n",
		"a decision by parts":      "decision.allowed := true\n",
		"allowed beside findings":  "allowed := true\n",
		"allowed under conditions": "allowed if input.bad\n",
		"a helper that fails":      "findings contains {\"code\": \"X\", \"effect\": \"audit\"} if lower(input.bad) == \"x\"\n",
	} {
		m := small().with(map[string]string{"evil.rego": "package pipeguard.admission\n\n" + text})
		m.Files["small_test.rego"] = "package x_test\n\ntest_nothing if true\n" // its author deleted the tests that would tell
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Activate(t.Context(), m); err == nil {
			t.Errorf("%s: it was activated", name)
		}
	}
}

func TestDefaultPolicyRefusesWithoutParameters(t *testing.T) {
	WithoutRaceDetector(t)
	guarded := map[string]any{
		"schema": "pipeguard.dev/admission/v1", "namespace": "kube-system", "serviceAccount": "csi-azuredisk-node-sa",
		"annotations": map[string]any{}, "containers": []any{}, "unmounted": []any{}, "persistentVolumes": []any{},
		"pod": map[string]any{"labels": map[string]any{}, "annotations": map[string]any{}, "field": "metadata"},
		"mounts": []any{map[string]any{
			"guarded": true, "neverAllowed": false, "privileged": true, "field": "f", "equalPower": "", "policies": []any{},
		}},
	}
	m := defaultPolicy(t)
	o, seen := patient, 0
	for name, data := range map[string]map[string]any{
		"none":              nil,
		"empty":             {},
		"another document":  {"parameters": parameters()["pipeguard"]},
		"null parameters":   {"pipeguard": map[string]any{"parameters": nil}},
		"a text":            {"pipeguard": map[string]any{"parameters": "PrivilegedOrAllowedNamespace"}},
		"a list of objects": {"pipeguard": map[string]any{"parameters": []any{map[string]any{"requirement": "PrivilegedOrAllowedNamespace"}}}},
	} {
		o.Checks = append(o.Checks, Check{Name: name, Input: guarded, Data: data, Want: func(d Decision) error {
			seen++
			if d.Allowed || len(d.Findings) != 1 || d.Findings[0].Code != "PG001" {
				return fmt.Errorf("got %+v", d)
			}
			return nil
		}})
	}
	activated(t, m.WithData(nil), o) // which fails if a check does not hold
	if seen != len(o.Checks) || seen == 0 {
		t.Errorf("%d of %d checks were asked", seen, len(o.Checks))
	}
	for name, data := range map[string]any{"null": nil, "a list": []any{}, "a text": "x"} {
		problems := Validate(m.WithData(map[string]any{"pipeguard": data}), patient)
		if len(problems) == 0 || !strings.Contains(problems[0].Message, "conflicting rule for data path") {
			t.Errorf("%s in the place of the packages: got %v", name, problems)
		}
	}
	e := activated(t, m, patient)
	if d, err := e.Decide(t.Context(), value(t, guarded)); err != nil || !d.Allowed {
		t.Errorf("with parameters: got %+v, %v", d, err)
	}
	if d, err := e.Decide(t.Context(), ast.NewArray()); err != nil || d.Allowed {
		t.Errorf("an input that is no object: got %+v, %v", d, err)
	}
}
