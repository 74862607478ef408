package policy

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestActivateRefusesModulesAndSaysWhere(t *testing.T) {
	const pkg = "package pipeguard.admission\n\n"
	for name, c := range map[string]struct {
		m    Modules
		want string
	}{
		"no modules":                 {Modules{}, "no module defines data.pipeguard.admission.decision"},
		"no tests":                   {Modules{Files: map[string]string{"small.rego": small().Files["small.rego"]}}, "there are none"},
		"only skipped tests":         {Modules{Files: map[string]string{"small.rego": small().Files["small.rego"], "a_test.rego": "package x_test\n\ntodo_test_a if true\n"}}, "there are none"},
		"only tests":                 {Modules{Files: map[string]string{"a_test.rego": "package x_test\n\ntest_a if true\n"}}, "no module defines"},
		"a failing test":             {small().with(map[string]string{"a_test.rego": "package x_test\n\ntest_a if 1 == 2\n"}), "a_test.rego:3: test x_test.test_a: not true"},
		"a failing case":             {small().with(map[string]string{"a_test.rego": "package x_test\n\ntest_a[n] if { some n in [\"good\", \"poor\"]; n == \"good\" }\n"}), "a_test.rego:3: test x_test.test_a: not true for poor"},
		"a test with an error":       {small().with(map[string]string{"a_test.rego": "package x_test\n\ntest_a if not to_number(\"x\") == 1\n"}), "a_test.rego:3: test x_test.test_a: "},
		"no entry point":             {small().with(map[string]string{"small.rego": pkg + "allowed := false\n"}), "entry_point"},
		"an entry point in a test":   {Modules{Files: map[string]string{"a_test.rego": "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []}\n\ntest_a if true\n"}}, "a_test.rego:1:1: reserved: the package of a test file must end in _test"},
		"a syntax error":             {small().with(map[string]string{"b.rego": pkg + "x := {\n"}), "b.rego:4:1: rego_parse_error"},
		"an empty file":              {small().with(map[string]string{"b.rego": ""}), "b.rego: rego_parse_error"},
		"syntax of Rego v0":          {small().with(map[string]string{"b.rego": pkg + "x { true }\n"}), "b.rego:3:1: rego_parse_error"},
		"an unsafe variable":         {small().with(map[string]string{"b.rego": pkg + "x if y == 1\n"}), "b.rego:3:6: rego_unsafe_var_error"},
		"an unused variable":         {small().with(map[string]string{"b.rego": pkg + "x if y := 1\n"}), "b.rego:3:6: rego_compile_error"},
		"an unused import":           {small().with(map[string]string{"b.rego": pkg + "import data.x\n"}), "b.rego:3:1: rego_compile_error"},
		"recursion":                  {small().with(map[string]string{"b.rego": pkg + "x if y\n\ny if x\n"}), "b.rego:3:1: rego_recursion_error"},
		"a type error":               {small().with(map[string]string{"b.rego": pkg + "x if 1 == \"a\"\n"}), "b.rego:3:6: rego_type_error"},
		"two descriptions of a code": {small().with(map[string]string{"b.rego": pkg + "# METADATA\n# custom:\n#   code: T001\nfindings contains 1 if input.x\n"}), "metadata: a second description of code T001"},
		"a code that is no code":     {small().with(map[string]string{"b.rego": pkg + "# METADATA\n# custom:\n#   code: pg1\nfindings contains 1 if input.x\n"}), "metadata: custom.code"},
		"a link that runs a script":  {small().with(map[string]string{"b.rego": pkg + "# METADATA\n# custom:\n#   code: T2\n#   docs: javascript:alert(1)\nfindings contains 1 if input.x\n"}), `metadata: custom.docs "javascript:alert(1)": want a URL that begins with https:// or http://`},
		"a remedy that is no text":   {small().with(map[string]string{"b.rego": pkg + "# METADATA\n# custom:\n#   code: T2\n#   remedy: [1]\nfindings contains 1 if input.x\n"}), "metadata: custom.remedy is not a string"},
		"data that is no JSON":       {small().WithData(map[string]any{"f": func() {}}), "data: encode data"},
		"too much data":              {small().WithData(map[string]any{"f": strings.Repeat("x", 4<<20)}), "data: data has"},
		"rules in the place of data": {small().with(map[string]string{"b.rego": "package a.b\n\nc := 1\n"}).WithData(map[string]any{"a": map[string]any{"b": map[string]any{"c": 1}}}), "conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			e := activated(t, small(), patient)
			before, _ := e.Active()
			_, err := e.Activate(t.Context(), c.m)
			wantError(t, err, c.want)
			if after, _ := e.Active(); after != before {
				t.Error("the policies before do not decide any more")
			}
		})
	}
}

// A trial tells, of modules that compile, what an activation would.
func TestTryRefusesWhatAnActivationRefuses(t *testing.T) {
	o := patient
	o.Checks = []Check{{Name: "canary", Input: map[string]any{}, Want: func(d Decision) error {
		if d.Allowed {
			return errors.New("it was allowed")
		}
		return nil
	}}}
	base := small().with(map[string]string{"b.rego": "package pipeguard.admission\n\nfindings contains {\"code\": \"T001\", \"effect\": \"deny\"} if not input.good\n"})
	ofBase := Check{Name: "base", Input: map[string]any{}, OfBase: true, Want: func(Decision) error { return errors.New("it was asked") }}
	failing := map[string]string{"a_test.rego": "package x_test\n\ntest_a if 1 == 2\n"}
	untested := base
	untested.Files = base.WithoutTests()
	skipped := untested.with(map[string]string{"a_test.rego": "package x_test\n\ntodo_test_a if true\n"})
	checked, added := base, untested.with(map[string]string{"c.rego": "package pipeguard.admission\n\nfindings contains {\"code\": \"T002\", \"effect\": \"deny\"} if input.evil\n"})
	added.Base = &base
	checked.Checks, added.Checks = []Check{ofBase}, []Check{ofBase}
	for name, c := range map[string]struct {
		m     Modules
		tests int
		want  string
	}{
		"what passes":                  {base, 1, ""},
		"a failing test":               {base.with(failing), 2, "a_test.rego:3: test x_test.test_a: not true"},
		"no tests":                     {untested, 0, "there are none"},
		"only skipped tests":           {skipped, 1, "there are none"},
		"a check of the options":       {small(), 1, `policy check "canary": it was allowed`},
		"a check of the modules":       {checked, 1, `policy check "base": it was asked`},
		"an addition without tests":    {added, 0, ""},
		"an addition with a test":      {added.with(map[string]string{"a_test.rego": "package x_test\n\ntest_a if true\n"}), 1, ""},
		"an addition whose test fails": {added.with(failing), 1, "a_test.rego:3: test x_test.test_a: not true"},
	} {
		t.Run(name, func(t *testing.T) {
			results, refusal, err := Try(t.Context(), c.m, o)
			if err != nil || len(results) != c.tests {
				t.Fatalf("%d results, want %d; %v", len(results), c.tests, err)
			}
			e, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Activate(t.Context(), c.m)
			if c.want == "" {
				if refusal != nil || err != nil {
					t.Errorf("refused: %v; %v", refusal, err)
				}
				return
			}
			wantError(t, refusal, c.want)
			wantError(t, err, c.want)
		})
	}
}

func TestActivateRunsTheChecks(t *testing.T) {
	refused := func(d Decision) error {
		if d.Allowed {
			return errors.New("it was allowed")
		}
		return nil
	}
	o := patient
	o.Checks = []Check{{Name: "canary", Input: map[string]any{"canary": true}, Want: refused}}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Activate(t.Context(), small())
	wantError(t, err, `policy check "canary": it was allowed`)
	if _, ok := e.Active(); ok {
		t.Fatal("it was activated")
	}
	_, err = e.Activate(t.Context(), deciding(`{"allowed": false, "findings": input.nothing}`))
	wantError(t, err, `policy check "canary": policy decision: undefined`)
	if _, err := e.Activate(t.Context(), deciding(`{"allowed": false, "findings": []}`)); err != nil {
		t.Fatal(err)
	}
}

func TestChecksHaveDataOfTheirOwn(t *testing.T) {
	m := deciding(`{"allowed": count([1 | data.switch.on]) == 1, "findings": []}`).WithData(map[string]any{"switch": map[string]any{"on": false}})
	var seen []bool
	see := func(d Decision) error { seen = append(seen, d.Allowed); return nil }
	o := patient
	o.Checks = []Check{
		{Name: "own", Input: map[string]any{}, Want: see},
		{Name: "on", Input: map[string]any{}, Data: map[string]any{"switch": map[string]any{"on": true}}, Want: see},
		{Name: "empty", Input: map[string]any{}, Data: map[string]any{}, Want: see},
	}
	e := activated(t, m, o)
	if diff := cmp.Diff([]bool{false, true, false}, seen); diff != "" {
		t.Fatal(diff)
	}
	if d, err := e.Decide(t.Context(), value(t, map[string]any{})); err != nil || d.Allowed {
		t.Fatalf("a check's data stayed: %+v, %v", d, err)
	}
}

func TestRevisionChangesWithEverythingThatDecides(t *testing.T) {
	base := Modules{Files: map[string]string{"a.rego": "xy", "b.rego": "z"}, Data: map[string]any{"k": 1}}
	seen := map[string]string{}
	for name, m := range map[string]Modules{
		"base":                     base,
		"other text":               {Files: map[string]string{"a.rego": "xY", "b.rego": "z"}, Data: base.Data},
		"text moved between files": {Files: map[string]string{"a.rego": "x", "b.rego": "yz"}, Data: base.Data},
		"text moved into a name":   {Files: map[string]string{"a.regox": "y", "b.rego": "z"}, Data: base.Data},
		"a file renamed":           {Files: map[string]string{"c.rego": "xy", "b.rego": "z"}, Data: base.Data},
		"a file less":              {Files: map[string]string{"a.rego": "xy"}, Data: base.Data},
		"other data":               base.WithData(map[string]any{"k": 2}),
		"no data":                  base.WithData(nil),
	} {
		data, err := newDocument(m.Data, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		r := m.revision(data)
		if other, twice := seen[r]; twice {
			t.Errorf("%s and %s have one revision", name, other)
		}
		if !strings.HasPrefix(r, "sha256:") || len(r) != 7+64 {
			t.Errorf("revision %q", r)
		}
		seen[r] = name
	}
}

func TestSnapshotTellsWhatWasActivated(t *testing.T) {
	e := activated(t, small(), patient)
	s, ok := e.Active()
	want := map[string]Rule{"T001": {Code: "T001", Title: "Bad", Severity: "low", Docs: "https://example.com/t001", Remedy: "Be good."}}
	if diff := cmp.Diff(want, s.Rules()); diff != "" || !ok || s.Tests() != 1 || s.Activated().IsZero() {
		t.Fatalf("%s, %v, %d tests", diff, ok, s.Tests())
	}
	s.Rules()["T001"] = Rule{}
	if r, _ := s.Rule("T001"); r.Title != "Bad" {
		t.Fatal("a caller changed the snapshot")
	}
}

func TestNeedsObjectFindsEveryWayToIt(t *testing.T) {
	WithoutRaceDetector(t)
	for expression, want := range map[string]bool{
		`{"a": 1 | input.object.spec}`:                          true,
		`{"a": 1 | input["object"]}`:                            true,
		`{"a": 1 | input[input.name]}`:                          true,
		`{"a": 1 | some k; input[k] == 1}`:                      true,
		`{"a": 1 | some k, v in input; k == v}`:                 true,
		`{"a": 1 | x := input; x.object}`:                       true,
		`{"a": 1 | object.get(input, "object", null)}`:          true,
		`{"a": 1 | walk(input, [_, v]); v == 1}`:                true,
		`{"a": 1 | [1 | input.object.x] == []}`:                 true,
		`{"a": 1 | input.labels[input.object.x]}`:               true,
		`{"a": 1 | f(input.object)}`:                            true,
		`{"a": 1 | not input.object}`:                           true,
		`{"a": 1 | every x in input.object.a { x == 1 }}`:       true,
		`{"a": 1 | input.mounts[_].object == 1}`:                false,
		`{"a": 1 | input.objects}`:                              false,
		`{"a": 1 | input.labels["object"]}`:                     false,
		`{"a": 1 | data.pipeguard.parameters.object}`:           false,
		`{"a": 1 | some m in input.mounts; m.pipe == "object"}`: false,
	} {
		expression = strings.ReplaceAll(expression, `{"a": 1 | `, `{"allowed": count([1 | `)
		expression = strings.TrimSuffix(expression, "}") + `]) == 0, "findings": []}`
		m := deciding(expression).with(map[string]string{"f.rego": "package pipeguard.admission\n\nf(x) if x\n"})
		e := activated(t, m, patient)
		if s, _ := e.Active(); s.NeedsObject() != want {
			t.Errorf("%s: NeedsObject is %v", expression, !want)
		}
	}
	e := activated(t, defaultPolicy(t), patient)
	if s, _ := e.Active(); s.NeedsObject() {
		t.Error("the default policy needs the object")
	}
}

func TestTryReportsEveryTest(t *testing.T) {
	m := small().with(map[string]string{"a_test.rego": "package x_test\n\ntest_good if true\n\ntest_bad if false\n\ntodo_test_later if false\n"})
	results, _, err := Try(t.Context(), m, patient)
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		results[i].Duration = 0
	}
	want := []TestResult{
		{Package: "x_test", Name: "test_good", File: "a_test.rego", Line: 3, Passed: true},
		{Package: "x_test", Name: "test_bad", File: "a_test.rego", Line: 5, Message: "not true"},
		{Package: "x_test", Name: "todo_test_later", File: "a_test.rego", Line: 7, Skipped: true},
		{Package: "pipeguard.admission_test", Name: "test_bad_is_refused", File: "small_test.rego", Line: 5, Passed: true},
	}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Fatal(diff)
	}
}

func TestFormatLaysOutOrSaysWhere(t *testing.T) {
	out, err := Format("a.rego", []byte("package a\nx:=1\n"))
	if err != nil || string(out) != "package a\n\nx := 1\n" {
		t.Fatalf("got %q, %v", out, err)
	}
	_, err = Format("a.rego", []byte("package a\nx := {\n"))
	wantError(t, err, "a.rego:3:1: rego_parse_error")
	_, err = Format("a.rego", []byte("package a\nx := "+strings.Repeat("[", 1000)))
	wantError(t, err, "a.rego:2:206: limit")
}

// OPA's parser reports some faults twice, the second time with a hint.
func TestAFaultIsReportedOnce(t *testing.T) {
	m := small().with(map[string]string{"b.rego": "package pipeguard.admission\n\nfindings contains {\"code\": if {\n"})
	places := map[string]int{}
	for _, p := range Validate(m, Options{}) {
		places[fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)]++
		if p.Line == 3 && !strings.Contains(p.Message, "expected rule key term") {
			t.Errorf("the hint is lost: %s", p)
		}
	}
	if diff := cmp.Diff(map[string]int{"b.rego:3:28": 1, "b.rego:4:1": 1}, places); diff != "" {
		t.Error(diff)
	}
}

func TestTwoFaultsAtOnePlaceAreBothReported(t *testing.T) {
	one := Problem{File: "a.rego", Line: 1, Col: 1, Code: "x", Message: "a name"}
	for name, other := range map[string]Problem{
		"a longer word":  {File: "a.rego", Line: 1, Col: 1, Code: "x", Message: "a names"},
		"another code":   {File: "a.rego", Line: 1, Col: 1, Code: "y", Message: "a name: b"},
		"another column": {File: "a.rego", Line: 1, Col: 2, Code: "x", Message: "a name"},
		"another file":   {File: "b.rego", Line: 1, Col: 1, Code: "x", Message: "a name"},
	} {
		if got := sortProblems([]Problem{other, one}); len(got) != 2 {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestABaseIsTestedWithoutWhatWasAdded(t *testing.T) {
	base := Modules{Files: map[string]string{
		"base.rego":      "package pipeguard.admission\n\ndecision := {\"allowed\": count(findings) == 0, \"findings\": findings}\n\nfindings contains {\"code\": \"B1\", \"effect\": \"deny\"} if input.bad\n",
		"base_test.rego": "package base_test\n\nimport data.pipeguard.admission\n\ntest_nothing_else_is_refused if admission.decision.allowed with input as {\"odd\": true}\n",
	}}
	files := base.WithoutTests()
	files["more.rego"] = "package pipeguard.admission\n\nfindings contains {\"code\": \"M1\", \"effect\": \"deny\"} if input.odd\n"
	files["more_test.rego"] = "package more_test\n\nimport data.pipeguard.admission\n\ntest_odd_is_refused if not admission.decision.allowed with input as {\"odd\": true}\n"
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Activate(t.Context(), Modules{Files: files, Base: &base}); err != nil {
		t.Errorf("an addition that refuses more: %v", err)
	}
	for name, text := range map[string]string{
		"a base whose tests fail":        "package base_test\n\ntest_it if 1 == 2\n",
		"a base that does not compile":   "package base_test\n\ntest_it if\n",
		"a base that nothing tests":      "package base_test\n",
		"a base whose test was disabled": "package base_test\n\ntodo_test_it if 1 == 1\n",
	} {
		broken := Modules{Files: maps.Clone(base.Files)}
		broken.Files["base_test.rego"] = text
		if _, err := e.Activate(t.Context(), Modules{Files: files, Base: &broken}); err == nil {
			t.Errorf("%s was activated", name)
		}
	}
}
