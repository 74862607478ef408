package policy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofCalls is the selector of these tests.
var ofCalls = &Selector{Texts: [2]string{"group", "operation"}, Types: map[string]string{"request": "object", "peer": "object", "named": "boolean"}}

// selecting are options with a selector.
func selecting(s *Selector) Options {
	o := patient
	o.Selector = s
	return o
}

// ruled is a policy with these rules, which may add to findings.
func ruled(rules ...string) Modules {
	m := deciding(`{"allowed": count(findings) == 0, "findings": findings}`)
	return m.with(map[string]string{"rules.rego": "package pipeguard.admission\n\nfindings contains {\"code\": \"X\", \"effect\": \"deny\"} if false\n\n" + strings.Join(rules, "\n\n") + "\n"})
}

// finds is a rule with this body, which may have several lines.
func finds(body string) string {
	return "findings contains {\"code\": \"X\", \"effect\": \"deny\"} if {\n" + body + "\n}"
}

func callOf(group, operation string) map[string]any {
	return map[string]any{
		"group": group, "operation": operation, "named": false, "request": map[string]any{"path": "p"}, "peer": map[string]any{"kind": "pod"},
	}
}

func TestADecisionFollowsFromTheSelectionWhereNothingElseIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		rules   string
		settled []string // operations of the group disk
		open    []string
	}{
		"no rule":                       {"", []string{"A", "B"}, nil},
		"a text alone":                  {finds(`input.operation == "A"`), []string{"A", "B"}, nil},
		"behind a comparison":           {finds("input.operation == \"A\"\ninput.named"), []string{"B"}, []string{"A"}},
		"the constant first":            {finds("\"A\" == input.operation\ninput.named"), []string{"B"}, []string{"A"}},
		"behind two":                    {finds("input.group == \"volume\"\ninput.operation == \"A\"\ninput.named"), []string{"A", "B"}, nil},
		"behind a set":                  {finds("input.operation in {\"A\", \"B\"}\ninput.named"), []string{"C"}, []string{"A", "B"}},
		"behind a list":                 {finds("input.operation in [\"A\", \"B\"]\ninput.named"), []string{"C"}, []string{"A", "B"}},
		"behind a name":                 {finds("o := input.operation\no == \"A\"\ninput.named"), []string{"B"}, []string{"A"}},
		"behind what it is not":         {finds("input.operation != \"A\"\ninput.named"), nil, []string{"A", "B"}},
		"behind a negation":             {finds("not input.operation == \"A\"\ninput.named"), nil, []string{"A", "B"}},
		"behind a list of numbers":      {finds("input.operation in [1]\ninput.named"), nil, []string{"A"}},
		"behind a list that a rule has": {"l := [\"A\"]\n" + finds("input.operation in l\ninput.named"), nil, []string{"A", "B"}},
		"behind a list with a rule":     {"l := \"A\"\n" + finds("input.operation in [l]\ninput.named"), nil, []string{"A", "B"}},
		"in front of a comparison":      {finds("input.named\ninput.operation == \"A\""), nil, []string{"A", "B"}},
		"below a text":                  {finds("input.operation.x == \"A\"\ninput.named"), nil, []string{"A"}},
		"behind a rule":                 {"is_a if input.operation == \"A\"\n" + finds("is_a\ninput.named"), nil, []string{"A", "B"}},
		"types":                         {finds("is_object(input.peer)\nnot is_object(input.request)\ntype_name(input.named) == \"string\""), []string{"A"}, nil},
		"the type of what is not told":  {finds("is_string(input.node)"), nil, []string{"A"}},
		"below what is told by type":    {finds("is_string(input.request.path)"), nil, []string{"A"}},
		"a name of what is told":        {finds("p := input.peer\nis_object(p)\np.kind == \"pod\""), nil, []string{"A"}},
		"one name for two":              {finds("p = input.peer\np = input.request\nis_object(p)"), nil, []string{"A"}},
		"told of in a list":             {finds("p := input.peer\nis_object(p)\ncount([p]) == 1"), nil, []string{"A"}},
		"told of in a key":              {"m[p] := 1 if { p := input.peer; is_object(p) }\n" + finds("count(m) == 2"), nil, []string{"A"}},
		"in a message":                  {`findings contains {"code": "X", "effect": "audit", "message": input.request.path}`, nil, []string{"A"}},
		"the whole input":               {finds("some k, v in input\nk == \"named\"\nv"), nil, []string{"A"}},
		"by a name found at last":       {finds("input[input.group]"), nil, []string{"A"}},
		"handed on":                     {finds(`object.get(input, "named", true)`), nil, []string{"A"}},
		"by way of a rule":              {"is_named if input.named\n" + finds("not is_named"), nil, []string{"A"}},
		"by way of a function":          {"f(x) := input.named if is_string(x)\n" + finds("f(input.operation)"), nil, []string{"A"}},
		"a function of texts":           {"f(x) := concat(\"-\", [x, x])\n" + finds(`f(input.operation) == "A-A"`), []string{"A", "B"}, nil},
		"by way of else":                {"r := 1 if input.operation == \"A\"\nelse := 2 if input.named\n" + finds("r == 2"), nil, []string{"A", "B"}},
		"by way of a branch":            {"r := 1 if input.named\nelse := 2 if input.operation == \"A\"\n" + finds("r == 2"), nil, []string{"A", "B"}},
		"behind a branch":               {"r := 1 if { input.operation == \"A\"; input.named } else := 2\n" + finds("r == 2"), []string{"B"}, []string{"A"}},
		"in a comprehension":            {finds(`count([x | x := input.request.path]) == 1`), nil, []string{"A"}},
		"in every":                      {finds("every x in [1, 2] {\nx == input.request.path\n}"), nil, []string{"A"}},
		"with another input":            {"is_named if input.named\n" + finds(`is_named with input as {"named": true}`), nil, []string{"A"}},
		"with another function":         {"f(x) := x\n" + finds(`f(1) == 2 with f as input.request.path`), nil, []string{"A"}},
		"by a document of another name": {"a.b if input.named\n" + finds("some x\ndata.pipeguard.admission.a[x]"), nil, []string{"A"}},
		"advice":                        {`advice contains {"code": "Y", "effect": "warn"} if input.named`, nil, []string{"A"}},
		"advice behind a comparison":    {"advice contains {\"code\": \"Y\", \"effect\": \"warn\"} if {\ninput.operation == \"A\"\ninput.named\n}", []string{"B"}, []string{"A"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := activated(t, ruled(c.rules), selecting(ofCalls))
			s, _ := e.Active()
			for _, o := range c.settled {
				if s.s.settled.find(value(t, callOf("disk", o))) == nil {
					t.Errorf("%s is evaluated each time", o)
				}
			}
			for _, o := range c.open {
				if s.s.settled.find(value(t, callOf("disk", o))) != nil {
					t.Errorf("%s is remembered", o)
				}
			}
		})
	}
}

func TestAnInputOfAnotherFormIsEvaluatedEachTime(t *testing.T) {
	e := activated(t, ruled(finds(`not is_object(input.request)`)), selecting(ofCalls))
	s, _ := e.Active()
	for name, change := range map[string]func(map[string]any){
		"a text is missing":     func(in map[string]any) { delete(in, "group") },
		"a text is a number":    func(in map[string]any) { in["operation"] = 1 },
		"a text is long":        func(in map[string]any) { in["operation"] = strings.Repeat("x", maxSelectionText+1) },
		"a type is another":     func(in map[string]any) { in["request"] = nil },
		"another type as well":  func(in map[string]any) { in["named"] = "false" },
		"a typed field missing": func(in map[string]any) { delete(in, "peer") },
	} {
		in := callOf("disk", "A")
		change(in)
		if s.s.settled.find(value(t, in)) != nil {
			t.Errorf("%s: it is remembered", name)
		}
	}
	if s.s.settled.find(value(t, "text")) != nil {
		t.Error("a text is remembered")
	}
}

// What is remembered is bounded whatever clients call operations, and a reader cannot change it.
func TestRememberedDecisionsAreBoundedAndNobodys(t *testing.T) {
	e := activated(t, ruled(`findings contains {"code": "X", "effect": "audit", "message": input.operation}`), selecting(ofCalls))
	s, _ := e.Active()
	decide := func(operation string) Decision {
		d, err := e.Decide(t.Context(), value(t, callOf("disk", operation)))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i := range maxSelections + 10 {
		operation := fmt.Sprint("O", i)
		first := decide(operation)
		first.Findings[0].Message = "changed"
		if again := decide(operation); again.Findings[0].Message != operation || !cmp.Equal(again, decide(operation)) {
			t.Fatalf("%+v", again)
		}
	}
	if n := s.s.settled.count.Load(); n != maxSelections {
		t.Errorf("%d selections", n)
	}
}

func TestADecisionWithoutItsAdviceIsNotRemembered(t *testing.T) {
	var s slot
	s.remember(Decision{Findings: []Finding{aboutAdvice("advice could not be evaluated: timeout")}})
	if _, ok := s.remembered(); ok {
		t.Error("it is")
	}
}

// parts of generated rules: some read a text, some a type, and some more.
var (
	begins = []string{
		`input.group == "volume"`, `"system" == input.group`, `input.operation in {"A", "B"}`, `input.operation in ["D"]`, // which the compiler leaves in front
		`input.operation != "A"`, `input.group == "disk"`, `not input.operation == "B"`,
		`input.group in {"volume", data.word}`, `startswith(input.operation, "A")`, `op == "A"`, `f(input.operation)`, `chosen == 1`, `chosen == 2`, `input.group == input.operation`,
		"o := input.operation\n\to == \"C\"", `input.operation in data.words`, `type_name(input.request) == "object"`, `is_object(input.peer)`, `not is_boolean(input.named)`,
	}
	reads = []string{
		`input.named`, `input.named == true`, `not is_named`, `input.request.path == "p"`, `input.request == input.peer`, `some k, v in input; k == "named"; v`, `object.get(input, "named", false)`,
		`input[input.group]`, `count(input.request) > 1`, `f(input.request.path)`, "every v in input.peer {\n\t\tv != \"pod\"\n\t}", `is_named with input as {"named": true}`, `is_named with input.named as true`,
		`count([x | some x in input.peer]) == 1`, "p := input.peer\n\tp = input.request", `to_number(input.request.path) > 1`, `is_string(input.request.path)`, "p := input.request\n\tis_object(p)\n\tp.path == \"q\"",
		`input.peer in [input.request]`, `chosen == 3`, `true`, `input.group == "disk"`, `input.operation in {"A", "C"}`,
	}
	heads = []string{
		`findings contains {"code": "X", "effect": "deny"}`, `findings contains {"code": "Y", "effect": "warn"}`, `findings contains {"code": "Z", "effect": "audit", "message": input.operation}`,
		`findings contains {"code": "V", "effect": "audit", "message": input.request.path}`, `advice contains {"code": "W", "effect": "warn"}`,
	}
)

const helpers = `package pipeguard.admission

default is_named := false

is_named if input.named == true

op := input.operation

f(x) if endswith(x, "A")

f(x) if x == "q"

chosen := 1 if {
	input.operation == "A"
	input.named
} else := 2 if input.group == "volume"

else := 3 if input.request.path == "p"
`

func generated(r *rand.Rand) Modules {
	of := func(l []string) string { return l[r.IntN(len(l))] }
	var rules []string
	for range 1 + r.IntN(3) {
		var body []string
		if r.IntN(4) > 0 {
			body = append(body, of(begins[:4]))
		}
		for range r.IntN(3) {
			body = append(body, of(begins))
		}
		body = append(body, of(reads))
		if r.IntN(6) == 0 {
			r.Shuffle(len(body), func(i, j int) { body[i], body[j] = body[j], body[i] })
		}
		rules = append(rules, of(heads)+" if {\n\t"+strings.Join(body, "\n\t")+"\n}")
	}
	m := ruled(rules...).with(map[string]string{"helpers.rego": helpers})
	m.Data = map[string]any{"word": "disk", "words": []any{"A", "D"}}
	return m
}

func generatedCall(r *rand.Rand) map[string]any {
	of := func(l ...any) any { return l[r.IntN(len(l))] }
	in := map[string]any{
		"group": of("disk", "disk", "volume", "system", "named", ""), "operation": of("A", "B", "C", "D", "AA", "disk", ""), "named": of(true, false),
		"request": of(map[string]any{"path": "p"}, map[string]any{"path": "q", "n": 1}, map[string]any{}, map[string]any{"kind": "pod"}, map[string]any{"path": "7"}),
		"peer":    of(map[string]any{"kind": "pod"}, map[string]any{"kind": "none"}, map[string]any{}),
	}
	if r.IntN(10) == 0 {
		in[of("group", "operation", "named", "request", "peer").(string)] = of(nil, 1, "A", true, []any{"A"})
	}
	if r.IntN(20) == 0 {
		delete(in, of("group", "operation", "named", "request", "peer").(string))
	}
	return in
}

// callsToCompare is how many calls a test compares.
func callsToCompare(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("PIPEGUARD_CALLS")
	if text == "" {
		return usual
	}
	calls, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// What is remembered is what an evaluation would say, for any rules and any calls. PIPEGUARD_CALLS compares more of them.
func TestRememberedDecisionsAreThoseOfAnEvaluation(t *testing.T) {
	WithoutRaceDetector(t)
	calls := callsToCompare(t, 100_000)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not for secrets
	const each = 250                    // calls of one policy
	remembered, refused := 0, 0
	for made := 0; made < calls; {
		m := generated(r)
		plain, err := New(patient)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plain.Activate(t.Context(), m); err != nil {
			if refused++; refused > 100+made/each {
				t.Fatalf("too few policies are taken: %v", err)
			}
			continue
		}
		quick := activated(t, m, selecting(ofCalls))
		s, _ := quick.Active()
		for range each {
			made++
			in := generatedCall(r)
			if _, ok := s.s.settled.find(value(t, in)).remembered(); ok {
				remembered++
			}
			want, wantErr := plain.Decide(t.Context(), value(t, in))
			got, err := quick.Decide(t.Context(), value(t, in))
			if diff := cmp.Diff(want, got); diff != "" || reasonOf(err) != reasonOf(wantErr) {
				t.Fatalf("%v\n%s\nwant %v, got %v\n%s", in, m.Files["rules.rego"], wantErr, err, diff)
			}
		}
	}
	t.Logf("%d calls, of which %d were remembered; %d policies refused", calls, remembered, refused)
	if remembered < calls/20 || remembered > calls*9/10 {
		t.Errorf("%d of %d calls were remembered: the comparison says little", remembered, calls)
	}
}
