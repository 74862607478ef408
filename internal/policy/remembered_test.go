package policy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
)

// remembering are options with room for so many decisions.
func remembering(most int) Options {
	o := patient
	o.Remember = most
	return o
}

// question asks about a value that has all fields.
type question struct{ value ast.Value }

func (q question) Value(func(string) bool) ast.Value { return q.value }

func (q question) Write(w *Writer, field string) {
	if object, ok := q.value.(ast.Object); !ok {
		w.isOver = true
	} else if t := object.Get(ast.StringTerm(field)); t != nil {
		w.Value(t.Value)
	}
}

func about(t testing.TB, v any) Question {
	t.Helper()
	return question{value(t, v)}
}

func decideAbout(t testing.TB, e *Engine, v any) (Decision, error) {
	t.Helper()
	s, _ := e.Active()
	return e.DecideAbout(t.Context(), s, nil, about(t, v))
}

func TestADecisionIsRememberedByTheFieldsThatAreRead(t *testing.T) {
	before := map[string]any{"group": "disk", "named": false, "request": map[string]any{"path": "p"}, "list": []any{"a"}}
	for name, c := range map[string]struct {
		rules         string
		same, another map[string]any // changes after which a decision is remembered, and after which none is
		isAlwaysMade  bool
	}{
		"no rule":                  {"", map[string]any{"group": "x", "named": nil}, nil, false},
		"one field":                {finds(`input.group == "x"`), map[string]any{"named": true, "request": 1}, map[string]any{"group": "y"}, false},
		"below a field":            {finds(`input.request.path == "x"`), map[string]any{"named": true}, map[string]any{"request": map[string]any{"path": "p", "n": 1}}, false},
		"advice":                   {`advice contains {"code": "Y", "effect": "warn"} if input.named`, map[string]any{"group": "x"}, map[string]any{"named": true}, false},
		"in a head":                {"m[input.group] := 1\n" + finds(`m.x`), map[string]any{"named": true}, map[string]any{"group": "x"}, false},
		"in the path of a head":    {"m.a[input.group].b := 1\n" + finds(`m.a.x.b`), map[string]any{"named": true}, map[string]any{"group": "x"}, false},
		"in a value":               {"m := input.group\n" + finds(`m == "x"`), map[string]any{"named": true}, map[string]any{"group": "x"}, false},
		"in the argument of a key": {finds(`input.request[input.group]`), map[string]any{"named": true}, map[string]any{"group": "x"}, false},
		"in an else":               {"m := 1 if input.named\nelse := 2 if input.group == \"x\"\n" + finds(`m == 2`), map[string]any{"request": 1}, map[string]any{"group": "x"}, false},
		"in a comprehension":       {finds(`count([x | some x in input.list]) == 2`), map[string]any{"named": true}, map[string]any{"list": []any{"b"}}, false},
		"in every":                 {finds("every x in input.list {\nx == \"b\"\n}"), map[string]any{"named": true}, map[string]any{"list": []any{}}, false},
		"a field that is gone":     {finds(`not input.list`), map[string]any{"named": true}, map[string]any{"list": absent}, false},
		"null and absent":          {finds(`input.list == null`), map[string]any{"named": true}, map[string]any{"list": nil}, false},
		"what a with replaces":     {"f if input.named\n" + finds(`f with input.named as true`), map[string]any{"group": "x"}, map[string]any{"named": true}, false},
		"what a with has":          {"f if input.named\n" + finds(`f with input.named as input.group`), map[string]any{"list": 1}, map[string]any{"group": "x"}, false},
		"another input":            {"f if input.named\n" + finds(`f with input as {"named": true}`), nil, nil, true},
		"the whole input":          {finds(`some k, v in input; k == v`), nil, nil, true},
		"handed on":                {finds(`object.get(input, "named", true)`), nil, nil, true},
		"by a name found at last":  {finds(`input[input.group]`), nil, nil, true},
		"by a name of data":        {finds(`input[data.word]`), nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := ruled(c.rules)
			m.Data = map[string]any{"word": "group"}
			e := activated(t, m, remembering(10))
			s, _ := e.Active()
			isKnown := func(in map[string]any) bool {
				_, _, ok := s.s.known.find(about(t, in))
				return ok
			}
			if _, err := decideAbout(t, e, before); err != nil {
				t.Fatal(err)
			}
			if isKnown(before) == c.isAlwaysMade {
				t.Errorf("remembered: %v", c.isAlwaysMade)
			}
			for field, v := range c.same {
				if !isKnown(changed(before, field, v)) {
					t.Errorf("another %s is another decision", field)
				}
			}
			for field, v := range c.another {
				if isKnown(changed(before, field, v)) {
					t.Errorf("another %s is the same decision", field)
				}
			}
		})
	}
}

// absent takes a field away.
const absent = "\x00absent"

func changed(in map[string]any, field string, v any) map[string]any {
	out := maps.Clone(in)
	if out[field] = v; v == absent {
		delete(out, field)
	}
	return out
}

// However many different inputs there are, a bounded number of decisions is held, and those that are asked for again stay. A reader cannot change one.
func TestRememberedDecisionsOfInputsAreBounded(t *testing.T) {
	const most = 20
	e := activated(t, ruled(`findings contains {"code": "X", "effect": "audit", "message": input.operation}`), remembering(most))
	s, _ := e.Active()
	decide := func(operation string) {
		t.Helper()
		d, err := decideAbout(t, e, callOf("disk", operation))
		if err != nil || len(d.Findings) != 1 || d.Findings[0].Message != operation {
			t.Fatal(d, err)
		}
		d.Findings[0].Message = "changed"
	}
	for i := range 10 * most {
		decide(fmt.Sprint("O", i))
		decide("again")
		if _, _, ok := s.s.known.find(about(t, callOf("disk", "again"))); !ok {
			t.Fatal("what is asked for again is forgotten")
		}
		if n := len(s.s.known.newer) + len(s.s.known.older); n > most+2 {
			t.Fatalf("%d decisions", n)
		}
	}
	if _, _, ok := s.s.known.find(about(t, callOf("disk", "O1"))); ok {
		t.Error("nothing is forgotten")
	}
}

func TestLargeInputsAndDecisionsAreNotRemembered(t *testing.T) {
	e := activated(t, ruled(`findings contains {"code": "X", "effect": "audit", "field": f} if some f in input.list`), remembering(10))
	s, _ := e.Active()
	many := func(n, size int) map[string]any {
		var list []any
		for i := range n {
			list = append(list, fmt.Sprintf("%0*d", size, i))
		}
		return map[string]any{"list": list}
	}
	for name, c := range map[string]struct {
		n, size int
		want    bool
	}{
		"small":         {maxRememberedFindings, 10, true},
		"many findings": {maxRememberedFindings + 1, 10, false},
		"long findings": {8, maxRememberedText / 8, false},
		"a long input":  {1, maxRememberedInput, false},
	} {
		in := many(c.n, c.size)
		if _, err := decideAbout(t, e, in); err != nil && c.size < maxField {
			t.Fatal(name, err)
		}
		if _, _, ok := s.s.known.find(about(t, in)); ok != c.want {
			t.Errorf("%s: remembered is %v", name, ok)
		}
	}
	for _, in := range []any{"text", nil, []any{}} {
		if place, _, _ := s.s.known.find(about(t, in)); place != nil {
			t.Errorf("%v has a place", in)
		}
	}
}

func TestAnInputDecisionWithoutItsAdviceIsNotRemembered(t *testing.T) {
	r := newRemembered(fields{}, 10)
	place, _, _ := r.find(about(t, map[string]any{}))
	r.remember(place, Decision{Findings: []Finding{aboutAdvice("advice could not be evaluated: timeout")}})
	if _, _, ok := r.find(about(t, map[string]any{})); ok {
		t.Error("it is")
	}
	if newRemembered(fields{}, 0) != nil {
		t.Error("decisions are remembered that nobody asked for")
	}
}

// What is remembered is what an evaluation would say, for any rules and any inputs. PIPEGUARD_CALLS compares more of them.
func TestRememberedDecisionsOfInputsAreThoseOfAnEvaluation(t *testing.T) {
	WithoutRaceDetector(t)
	calls := callsToCompare(t, 50_000)
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
		quick := activated(t, m, remembering(40))
		s, _ := quick.Active()
		var asked []map[string]any
		for range each {
			made++
			in := generatedCall(r)
			if len(asked) > 0 && r.IntN(3) > 0 { // one of the last inputs, or with one change
				in = maps.Clone(asked[len(asked)-1-r.IntN(min(len(asked), 30))])
				if field := slices.Collect(maps.Keys(in))[r.IntN(len(in))]; r.IntN(2) == 0 {
					in[field] = generatedCall(r)[field]
				}
			}
			in["noise"] = r.IntN(1000)
			asked = append(asked, in)
			if _, _, ok := s.s.known.find(about(t, in)); ok {
				remembered++
			}
			want, wantErr := plain.Decide(t.Context(), value(t, in))
			got, err := decideAbout(t, quick, in)
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

// Different values have different texts, and no text begins with another: so two lists of them do not have one text either.
func FuzzFingerprint(f *testing.F) {
	for _, pair := range [][2]string{
		{`{"a": ["b", "c"]}`, `{"a": ["bc", ""]}`}, {`{"a": {"b": null}}`, `{"a": {}}`}, {`{"a": null}`, `{}`}, {`{"a": 1}`, `{"a": "1"}`}, {`{"a": true}`, `{"a": false}`},
		{`{"a": [], "b": "x"}`, `{"a": ["x"]}`}, {`{"a": 1.0}`, `{"a": 1}`}, {`{"a": {"x": 1, "y": 2}}`, `{"a": {"y": 2, "x": 1}}`},
	} {
		f.Add(pair[0], pair[1])
	}
	read := fields{names: []string{"a", "b"}}
	f.Fuzz(func(t *testing.T, a, b string) {
		one, err := ast.ValueFromReader(strings.NewReader(a))
		if err != nil {
			return
		}
		two, err := ast.ValueFromReader(strings.NewReader(b))
		if err != nil {
			return
		}
		first, ok := read.fingerprint(question{one})
		second, isToo := read.fingerprint(question{two})
		if !ok || !isToo {
			return
		}
		isSame := slices.IndexFunc(read.names, func(name string) bool {
			x, y := one.(ast.Object).Get(ast.StringTerm(name)), two.(ast.Object).Get(ast.StringTerm(name))
			return (x == nil) != (y == nil) || x != nil && x.Value.Compare(y.Value) != 0
		}) < 0
		if first == second && !isSame {
			t.Errorf("%s and %s have one fingerprint", a, b)
		}
		if first != second && isSame && !strings.ContainsAny(a+b, "0123456789") { // a number has more than one text
			t.Errorf("%s and %s are the same, and have two fingerprints", a, b)
		}
	})
}
