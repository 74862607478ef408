package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/policies/node"
)

// enforcement is a place where a base policy decides, and additions may come to it.
type enforcement struct {
	name    string
	base    policy.Modules
	options policy.Options
	words   *strings.Replacer // HOME, RULE and FUNCTION are its package, a rule of the base that permits, and a function, or another such rule
}

func enforcements(t testing.TB) []enforcement {
	t.Helper()
	admitting, err := policy.LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	if admitting, err = (admission.Policies{Parameters: admission.DefaultParameters()}).Bind(admitting); err != nil {
		t.Fatal(err)
	}
	admitting.InputSchema = nil // what is read of the input is not what these tests are about
	calling, err := policy.LoadFS(node.FS())
	if err != nil {
		t.Fatal(err)
	}
	patient := policy.Options{Timeout: 20 * time.Second, BaseTested: true}
	return []enforcement{
		{"admission", admitting, patient, strings.NewReplacer("HOME", "pipeguard.admission", "LAST", "admission", "RULE", "namespace_suffices", "FUNCTION", "privilege_permits", "PARAMETER", "requirement")},
		{"node", calling, nodepolicy.EngineOptions(patient), strings.NewReplacer("HOME", "pipeguard.node", "LAST", "node", "RULE", "is_named", "FUNCTION", "well_formed", "PARAMETER", "anything")},
	}
}

// with adds files, in the words of the enforcement, to its base.
func (e enforcement) with(added map[string]string) policy.Modules {
	m := e.base
	m.Files, m.Base = e.base.WithoutTests(), &e.base
	for name, text := range added {
		m.Files[name] = e.words.Replace(text)
	}
	return m
}

// problems are those of one added file.
func (e enforcement) problems(text string) []policy.Problem {
	return policy.Validate(e.with(map[string]string{"added/a.rego": text, "added/a_test.rego": "package added_test\n\ntest_it if true\n"}), e.options)
}

// exemptions are additions that would permit what the base refuses, or keep it from being refused. A reason other than
// CodeAddition is the compiler's own.
var exemptions = map[string]struct{ text, code string }{
	"a rule of the base, for one namespace":          {"package HOME\n\nRULE if input.namespace == \"evil\"", ""},
	"a rule of the base, by a label":                 {"package HOME\n\nRULE if input.labels.magic == \"x\"", ""},
	"a function of the base":                         {"package HOME\n\nFUNCTION(_) if input.namespace == \"evil\"", ""},
	"a function of the base with a value":            {"package HOME\n\nFUNCTION(_) := true", ""},
	"a function of the base with other operands":     {"package HOME\n\nFUNCTION(_, _) := true", ""},
	"a default of a rule":                            {"package HOME\n\ndefault RULE := true", ""},
	"a default of a function":                        {"package HOME\n\ndefault FUNCTION(_) := true", ""},
	"a second value, by else":                        {"package HOME\n\nRULE := false if input.x\nelse := true", ""},
	"a set in the place of a rule":                   {"package HOME\n\nRULE contains \"x\"", ""},
	"an object in the place of a rule":               {"package HOME\n\nRULE[x] := true if some x in input.names", ""},
	"a key below a rule":                             {"package HOME\n\nRULE.x := true", ""},
	"the decision":                                   {"package HOME\n\ndecision := {\"allowed\": true, \"findings\": set()}", ""},
	"a part of the decision":                         {"package HOME\n\ndecision.allowed := true", ""},
	"that it is allowed":                             {"package HOME\n\nallowed if true", ""},
	"that it is allowed, by a name in quotes":        {"package pipeguard[\"LAST\"]\n\nallowed if true", ""},
	"findings that replace the set":                  {"package HOME\n\nfindings := set()", ""},
	"findings by key":                                {"package HOME\n\nfindings[x] := y if {\n\tx := \"a\"\n\ty := 1\n}", ""},
	"findings below a key":                           {"package HOME\n\nfindings.x contains \"y\"", ""},
	"findings that are a function":                   {"package HOME\n\nfindings(_) := set()", ""},
	"a default for findings":                         {"package HOME\n\ndefault findings := set()", ""},
	"advice that replaces the set":                   {"package HOME\n\nadvice := set()", ""},
	"a function of the base, from the package above": {"package pipeguard\n\nLAST.FUNCTION(_) if true", ""},
	"a rule of the base, from the package above":     {"package pipeguard\n\nLAST.RULE if true", ""},
	"the package of the base, from above":            {"package pipeguard\n\nLAST := {\"decision\": {\"allowed\": true, \"findings\": []}}", ""},
	"any name, from the package above":               {"package pipeguard\n\nLAST[x] := true if some x in [\"RULE\"]", ""},
	"any name in any package below pipeguard":        {"package pipeguard\n\nx[y].z := true if { some y in [\"LAST\"]; x := 1 }", "rego"},
	"a package in the place of a rule":               {"package HOME.RULE\n\nx := true", ""},
	"a package below the findings":                   {"package HOME.findings\n\nx := true", ""},
	"a rule that ends the base's advice":             {"package HOME\n\nadvice(_) := 1", ""},
	"a function of Rego: startswith":                 {"package HOME\n\nstartswith(_, _) := true", ""},
	"a function of Rego: is_array":                   {"package HOME\n\nis_array(_) := true", ""},
	"a function of Rego: lower":                      {"package HOME\n\nlower(_) := \"x\"", ""},
	"a function of Rego with a dot":                  {"package HOME\n\nregex.match(_, _) := true", ""},
	"a function of Rego from the package above":      {"package pipeguard\n\nLAST.object.get(_, _, _) := true", ""},
	"an operator of Rego: in":                        {"package HOME\n\ninternal.member_2(_, _) := true", ""},
	"an operator of Rego: ==":                        {"package HOME\n\nequal(_, _) := true", ""},
	"an operator of Rego: <":                         {"package HOME\n\nlt(_, _) := true", ""},
	"an operator of Rego: !=":                        {"package HOME\n\nneq(_, _) := false", ""},
	"a rule named input":                             {"package HOME\n\ninput := {\"namespace\": \"kube-system\"}", ""},
	"a rule named data":                              {"package HOME\n\ndata := {}", ""},
	"the parameters":                                 {"package pipeguard.parameters\n\nrequirement := \"x\"", policy.CodeReserved},
	"the parameters, from above":                     {"package pipeguard\n\nparameters := {}", policy.CodeReserved},
	"the parameters of modules":                      {"package pipeguard.modules.x\n\ny := 1", policy.CodeReserved},
	"the policies":                                   {"package pipeguard\n\npolicies[x] := {} if some x in [\"a\"]", policy.CodeReserved},
	"the base judged over other data":                {"package HOME\n\nadvice contains {\"code\": \"X\", \"effect\": \"audit\"} if allowed with data.pipeguard.parameters as {}", ""},
	"a rule of the base, overridden":                 {"package HOME\n\nadvice contains {\"code\": \"X\", \"effect\": \"audit\"} if allowed with RULE as true", ""},
	"an import under the name of a rule":             {"package HOME\n\nimport data.house.yes as RULE\n\nRULE if true", "any"},
	"a circle through the findings":                  {"package HOME\n\nfindings contains {\"code\": \"X\", \"effect\": \"warn\"} if allowed", "rego"},
	"a file of the base":                             {"FILE", ""},
}

func TestAdditionsExemptNobody(t *testing.T) {
	for _, e := range enforcements(t) {
		if problems := e.problems("package HOME\n\nfindings contains {\"code\": \"X1\", \"effect\": \"deny\"} if house_closed\n\nhouse_closed if input.x"); len(problems) > 0 {
			t.Fatalf("%s: a rule that refuses more: %v", e.name, problems)
		}
		for name, c := range exemptions {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				m := e.with(map[string]string{"added/a.rego": c.text, "added/a_test.rego": "package added_test\n\ntest_it if true\n"})
				if c.text == "FILE" {
					m.Files["decision.rego"] = e.words.Replace("package HOME\n\ndecision := {\"allowed\": true, \"findings\": set()}\n")
					delete(m.Files, "added/a.rego")
				}
				problems := policy.Validate(m, e.options)
				want := c.code
				if want == "" {
					want = policy.CodeAddition
				}
				if !slices.ContainsFunc(problems, func(p policy.Problem) bool { return want == "any" || strings.HasPrefix(p.Code, want) }) {
					t.Errorf("problems %v, want one of %s", problems, want)
				}
			})
		}
	}
}

func TestTheFilesOfTheBaseAreAllThere(t *testing.T) {
	for _, e := range enforcements(t) {
		for name := range e.base.WithoutTests() {
			m := e.with(nil)
			delete(m.Files, name)
			if len(policy.Validate(m, e.options)) == 0 {
				t.Errorf("%s: %s can be left out", e.name, name)
			}
		}
	}
}

// A base of one's own says what it rests on in its own words, and may read what it leaves undefined.
func TestWhatABaseReadsIsNotDefinedByAdditions(t *testing.T) {
	base := func(body string) policy.Modules {
		return policy.Modules{Files: map[string]string{"base.rego": "package pipeguard.admission\n\n" +
			"decision := {\"allowed\": count(findings) == 0, \"findings\": findings}\n\n" +
			"findings contains {\"code\": \"B1\", \"effect\": \"deny\"} if {\n\tinput.bad\n\tnot excused\n}\n\n" + body + "\n"}}
	}
	for name, c := range map[string]struct{ base, added, want string }{
		"a document elsewhere":               {"excused if data.acme.exceptions[input.name]", "package acme\n\nexceptions := {\"evil\"}", "data.acme.exceptions is read by the base policy (base.rego:10)"},
		"a part of a document elsewhere":     {"excused if data.acme.exceptions.names[input.name]", "package acme.exceptions\n\nnames contains \"evil\"", "is read by the base policy"},
		"a document around it":               {"excused if data.acme.exceptions.names.x", "package acme\n\nexceptions[x] := {\"x\": true} if some x in [\"names\"]", "is read by the base policy"},
		"a package whose name is computed":   {"excused if data[input.team].excused", "package evil\n\nexcused := true", "is read by the base policy"},
		"a name in another package":          {"excused if data.pipeguard.lib[input.name]", "package pipeguard.lib\n\nevil := true", "is read by the base policy"},
		"a variable that nothing declares":   {"excused if input.names[i] == \"x\"", "package pipeguard.admission\n\ni := 1", "is read by the base policy"},
		"a variable of an old comprehension": {"excused if count([1 | input.names[i] == \"x\"]) > 0", "package pipeguard.admission\n\ni := 1", "is read by the base policy"},
		"nothing that the base reads":        {"excused if data.acme.exceptions[input.name]", "package pipeguard.admission\n\nfindings contains {\"code\": \"A1\", \"effect\": \"deny\"} if helper\n\nhelper if input.odd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := base(c.base)
			m := policy.Modules{Files: maps.Clone(b.Files), Base: &b}
			m.Files["added.rego"] = c.added
			if problems := policy.Validate(m, policy.Options{}); c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) == 0 || !strings.Contains(problems[0].Message, c.want)) {
				t.Errorf("problems %v, want %q", problems, c.want)
			}
		})
	}
}

func TestAuthorsOfAdditionsKeepOutOfEachOthersRules(t *testing.T) {
	const strict = "package HOME\n\nfindings contains {\"code\": \"A1\", \"effect\": \"deny\"} if not house_trusts\n\nhouse_trusts if input.labels[i] == \"good\"\n"
	for _, e := range enforcements(t) {
		for name, c := range map[string]struct {
			text, want string
			owners     int
		}{
			"another definition of a helper":     {"package HOME\n\nhouse_trusts if true", "is also defined by another module (a/a.rego)", 2},
			"a helper around another":            {"package pipeguard\n\nLAST.house_trusts.x := 1", "is also defined by another module", 2},
			"a variable of another":              {"package HOME\n\ni := \"x\"", "is read by another module (a/a.rego:5)", 2},
			"a use of another's helper":          {"package HOME\n\nfindings contains {\"code\": \"B1\", \"effect\": \"deny\"} if house_trusts", "belongs to another module (a/a.rego)", 2},
			"more findings":                      {"package HOME\n\nfindings contains {\"code\": \"B1\", \"effect\": \"deny\"} if input.other", "", 2},
			"a helper in two files of an author": {"package HOME\n\nhouse_trusts if input.y", "", 1},
		} {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				m := e.with(map[string]string{"a/a.rego": strict, "b/b.rego": c.text})
				if c.owners == 2 {
					m.Owner = func(file string) string { owner, _, _ := strings.Cut(file, "/"); return owner }
				}
				problems := policy.Validate(m, e.options)
				named := slices.ContainsFunc(problems, func(p policy.Problem) bool {
					return p.File == "b/b.rego" && p.Line > 0 && strings.Contains(p.Message, c.want)
				})
				if c.want == "" && len(problems) > 0 || c.want != "" && !named {
					t.Errorf("problems %v, want %q", problems, c.want)
				}
			})
		}
	}
}

// A helper that another author's tests define too made these fail, far from what was wrong.
func TestAuthorsOfAdditionsKeepOutOfEachOthersTests(t *testing.T) {
	for _, e := range enforcements(t) {
		m := e.with(map[string]string{
			"a/a_test.rego": "package house_test\n\ncodes(_) := 1\n\ntest_it if codes(1) == 1\n",
			"b/b_test.rego": "package house_test\n\ncodes(_) := 2\n\ntest_it if 1 == 1\n",
		})
		if problems := policy.Validate(m, e.options); len(problems) > 0 {
			t.Errorf("%s: the files of one author: %v", e.name, problems)
		}
		m.Owner = func(file string) string { owner, _, _ := strings.Cut(file, "/"); return owner }
		problems := policy.Validate(m, e.options)
		if len(problems) != 1 || problems[0].File != "b/b_test.rego" || problems[0].Line != 3 || !strings.Contains(problems[0].Message, "is also defined by the tests of another module (a/a_test.rego)") {
			t.Errorf("%s: %v", e.name, problems)
		}
	}
}

// In Rego a name that is not there is undefined, and a refusal that rests on it vanishes without a word.
func TestAnAdditionThatReadsANameWhichIsGoneIsRefused(t *testing.T) {
	for _, e := range enforcements(t) {
		for name, c := range map[string]struct{ condition, want string }{
			"a rule of the base that was renamed":       {"data.HOME.no_such_rule", "data.HOME.no_such_rule is read here, and nothing defines it"},
			"a rule that is negated":                    {"not data.HOME.no_such_rule", "data.HOME.no_such_rule"},
			"a document elsewhere":                      {"data.house.closed", "data.house.closed"},
			"the parameters of a module that is absent": {"data.pipeguard.modules.hosue.closed", "data.pipeguard.modules.hosue"},
			"a rule of the base":                        {"data.HOME.RULE", ""},
			"a part of the parameters":                  {"data.pipeguard.parameters.PARAMETER", ""},
			"the parameters of a module":                {"data.pipeguard.modules.house.anything", ""},
			"a helper of its own":                       {"data.HOME.house_open", ""},
		} {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				m := e.with(map[string]string{"a.rego": "package HOME\n\nfindings contains {\"code\": \"A1\", \"effect\": \"deny\"} if " + c.condition + "\n\nhouse_open if input.x\n"})
				data := maps.Clone(m.Data)
				root := map[string]any{}
				if old, ok := data["pipeguard"].(map[string]any); ok {
					root = maps.Clone(old)
				}
				root["modules"] = map[string]any{"house": map[string]any{}}
				m = m.WithData(map[string]any{"pipeguard": root})
				problems, want := policy.Validate(m, e.options), e.words.Replace(c.want)
				if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, want) || problems[0].Line != 3) {
					t.Errorf("problems %v, want %q", problems, want)
				}
			})
		}
	}
}

// What fails for everything that it is asked refuses everything, and so does not come to decide.
func TestAnAdditionThatFailsForEveryInputIsNotActivated(t *testing.T) {
	for _, e := range enforcements(t) {
		for name, text := range map[string]string{
			"a helper of two values": "package HOME\n\nfindings contains {\"code\": \"A1\", \"effect\": \"deny\"} if house_value == 3\n\nhouse_value := 1\n\nhouse_value := 2 if true\n",
			"a finding that is none": "package HOME\n\nfindings contains \"deny\"\n",
			"an effect that is none": "package HOME\n\nfindings contains {\"code\": \"A1\", \"effect\": \"allow\"}\n",
			"a function that fails":  "package HOME\n\nfindings contains {\"code\": \"A1\", \"effect\": \"audit\"} if to_number(\"x\") == 1\n",
		} {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				engine, err := policy.New(e.options)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := engine.Activate(t.Context(), e.with(map[string]string{"a.rego": text, "a_test.rego": "package a_test\n\ntest_it if true\n"})); err == nil {
					t.Error("it was activated")
				}
			})
		}
	}
}

// Whoever adds a module is told of its own file, also where the compiler comes upon a rule of the base first.
func TestWhatAnAdditionIsRefusedForStandsInItsOwnFile(t *testing.T) {
	const head = "package HOME\n\n"
	rules := func(n int) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, "house_%d := %d\n", i, i)
		}
		return b.String()
	}
	for _, e := range enforcements(t) {
		taken := 0
		for name, text := range e.base.WithoutTests() {
			module, err := ast.ParseModule(name, text)
			if err != nil {
				t.Fatal(err)
			}
			taken += len(module.Rules)
		}
		left := 1200 - taken
		for name, c := range map[string]struct {
			text, code string
			line, col  int
			want       string
		}{
			"the decision is read":           {head + "findings contains {\"code\": \"X1\", \"effect\": \"audit\"} if {\n\tinput.x\n\tdecision.allowed\n}", "rego_recursion_error", 5, 2, "data.HOME.decision.allowed is read here, by a rule of data.HOME.findings, and rests on that rule itself"},
			"the decision, by a helper":      {head + "findings contains {\"code\": \"X1\", \"effect\": \"audit\"} if house_b\n\nhouse_b if decision.allowed", "rego_recursion_error", 5, 12, "by a rule of data.HOME.house_b"},
			"the decision, in an else":       {head + "findings contains {\"code\": \"X1\", \"effect\": \"audit\"} if house_b\n\nhouse_b if input.x\nelse := 1 if decision.allowed", "rego_recursion_error", 6, 1, "data.HOME.decision.allowed is read here"},
			"anything":                       {head + "findings contains {\"code\": \"X1\", \"effect\": \"audit\"} if {\n\tsome k\n\tdata[k].LAST.allowed\n}", "rego_recursion_error", 5, 2, "data[…] is read here, by a rule of data.HOME.findings"},
			"a circle of its own":            {head + "findings contains {\"code\": \"X1\", \"effect\": \"audit\"} if house_a\n\nhouse_a if house_b\n\nhouse_b if house_a", "rego_recursion_error", 5, 12, "data.HOME.house_b is read here, by a rule of data.HOME.house_a"},
			"more rules than are left":       {rules(left + 1), "limit", 3 + left, 1, fmt.Sprintf("this is rule 1201 of all modules with their tests, and at most 1200 are taken: this file has %d, and %d were left for it", left+1, left)},
			"many more rules than are left":  {rules(left + 100), "limit", 3 + left, 1, fmt.Sprintf("this file has %d, and %d were left for it", left+100, left)},
			"rules with many dependencies":   {head + strings.Repeat("house_x := 1 if input.a\n", 900) + "house_y if {house_x == 1}\n" + strings.Repeat("house_z contains 1 if house_x == 2\n", 100), "limit", 904, 1, "all modules are too complex together"},
			"the input is hidden":            {head + "input := {}", policy.CodeAddition, 3, 1, "data.HOME.input would hide a function of Rego, input or data"},
			"a second description of a code": {head + "# METADATA\n# custom:\n#   code: CODE\nfindings contains {\"code\": \"X1\", \"effect\": \"audit\"} if input.x", "metadata", 3, 1, "a second description of code CODE"},
		} {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				code := map[string]string{"admission": "PG001", "node": "PN001"}[e.name]
				text := strings.ReplaceAll(c.text, "CODE", code)
				problems := policy.Validate(e.with(map[string]string{"added/a.rego": text}), e.options)
				want := e.words.Replace(strings.ReplaceAll(c.want, "CODE", code))
				if !slices.ContainsFunc(problems, func(p policy.Problem) bool {
					return p.File == "added/a.rego" && p.Line == c.line && p.Col == c.col && p.Code == c.code && strings.Contains(p.Message, want)
				}) {
					t.Errorf("%v, want %d:%d: %s: %s", problems, c.line, c.col, c.code, want)
				}
				for _, p := range problems {
					if p.File != "added/a.rego" {
						t.Errorf("it blames %s", p)
					}
				}
			})
		}
	}
}
