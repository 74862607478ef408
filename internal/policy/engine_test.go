package policy

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/pipeguard/pipeguard/internal/turns"
)

func TestNewReportsEveryFaultOfItsOptions(t *testing.T) {
	_, err := New(Options{Entrypoint: "data.x[_]", Timeout: -1, MaxConcurrent: -1, Checks: []Check{{}}})
	for _, part := range []string{"Entrypoint", "Timeout", "MaxConcurrent", "Checks[0]"} {
		wantError(t, err, part)
	}
}

func TestNewRefusesEntrypointsThatAreNoDocument(t *testing.T) {
	for _, entry := range []string{"x", "data", "data.x", "input.x.y", "data.x[y].z", "data.x.y; true", "http.send({})", "data.a[1].b", "data.a[data.b].c"} {
		if _, err := New(Options{Entrypoint: entry}); err == nil {
			t.Errorf("%s was taken", entry)
		}
	}
}

func TestDecideHasNoDecisionBeforeAnActivation(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Decide(t.Context(), value(t, map[string]any{}))
	if reasonOf(err) != ReasonNoPolicy || d.Allowed {
		t.Fatalf("got %+v, %v", d, err)
	}
	if _, ok := e.Active(); ok {
		t.Fatal("something is active")
	}
}

func TestDecideReturnsFindingsInOrderWithTheRevision(t *testing.T) {
	m := deciding(`{"allowed": false, "findings": {
		{"code": "B1", "effect": "warn", "field": "b"}, {"code": "B1", "effect": "audit", "field": "a", "message": "m"}, {"code": "A1", "effect": "deny"}}}`)
	e := activated(t, m, patient)
	d, err := e.Decide(t.Context(), value(t, map[string]any{}))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := e.Active()
	want := Decision{Revision: s.Revision(), Findings: []Finding{
		{Code: "A1", Effect: EffectDeny}, {Code: "B1", Effect: EffectAudit, Field: "a", Message: "m"}, {Code: "B1", Effect: EffectWarn, Field: "b"},
	}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Fatal(diff)
	}
}

func TestDecideTakesNoResultThatIsNotADecision(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		want       Reason
	}{
		"a boolean":                               {`true`, ReasonType},
		"false":                                   {`false`, ReasonType},
		"null":                                    {`null`, ReasonType},
		"a list":                                  {`[]`, ReasonType},
		"an empty object":                         {`{}`, ReasonType},
		"allowed is missing":                      {`{"findings": []}`, ReasonType},
		"findings are missing":                    {`{"allowed": true}`, ReasonType},
		"a key more":                              {`{"allowed": true, "findings": [], "reason": "x"}`, ReasonType},
		"a key that is no string":                 {`{"allowed": true, "findings": [], 1: 2}`, ReasonType},
		"allowed is text":                         {`{"allowed": "true", "findings": []}`, ReasonType},
		"allowed is a number":                     {`{"allowed": 1, "findings": []}`, ReasonType},
		"findings are null":                       {`{"allowed": true, "findings": null}`, ReasonType},
		"findings are an object":                  {`{"allowed": true, "findings": {"a": {"code": "A", "effect": "warn"}}}`, ReasonType},
		"a finding is text":                       {`{"allowed": true, "findings": ["A"]}`, ReasonType},
		"a finding without code":                  {`{"allowed": true, "findings": [{"effect": "warn"}]}`, ReasonType},
		"a finding without effect":                {`{"allowed": true, "findings": [{"code": "A"}]}`, ReasonType},
		"an unknown effect":                       {`{"allowed": true, "findings": [{"code": "A", "effect": "Deny"}]}`, ReasonType},
		"an empty effect":                         {`{"allowed": true, "findings": [{"code": "A", "effect": ""}]}`, ReasonType},
		"an effect that is no text":               {`{"allowed": true, "findings": [{"code": "A", "effect": ["warn"]}]}`, ReasonType},
		"a code in lower case":                    {`{"allowed": true, "findings": [{"code": "a1", "effect": "warn"}]}`, ReasonType},
		"a code with a line break":                {`{"allowed": true, "findings": [{"code": "A\nB", "effect": "warn"}]}`, ReasonType},
		"a code that ends in a line break":        {`{"allowed": true, "findings": [{"code": "A\n", "effect": "warn"}]}`, ReasonType},
		"a key more in a finding":                 {`{"allowed": true, "findings": [{"code": "A", "effect": "warn", "pod": "x"}]}`, ReasonType},
		"a message that is no text":               {`{"allowed": true, "findings": [{"code": "A", "effect": "warn", "message": {}}]}`, ReasonType},
		"allowed and denied at once":              {`{"allowed": true, "findings": [{"code": "A", "effect": "deny"}]}`, ReasonType},
		"a long message":                          {`{"allowed": true, "findings": [{"code": "A", "effect": "warn", "message": concat("", [input.long | some _ in input.list])}]}`, ReasonType},
		"a long field":                            {`{"allowed": true, "findings": [{"code": "A", "effect": "warn", "field": concat("", [input.long | some _ in input.list])}]}`, ReasonType},
		"the result depends on what is not there": {`{"allowed": input.nothing, "findings": []}`, ReasonUndefined},
		"an operand of the wrong type":            {`{"allowed": startswith(input.list, "x"), "findings": []}`, ReasonBuiltin},
		"an operand of the wrong form":            {`{"allowed": to_number(input.long) == 1, "findings": []}`, ReasonBuiltin},
	} {
		t.Run(name, func(t *testing.T) {
			e := activated(t, deciding(c.expression), patient)
			d, err := e.Decide(t.Context(), value(t, map[string]any{"long": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "list": make([]int, 40)}))
			if reasonOf(err) != c.want || d.Allowed || d.Findings != nil {
				t.Fatalf("got %+v, %v, want an error with reason %s", d, err, c.want)
			}
		})
	}
}

func TestDecideRefusesConflictingRules(t *testing.T) {
	m := deciding(`{"allowed": false, "findings": []} if input.a`).with(map[string]string{
		"other.rego": "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []} if input.b\n",
	})
	e := activated(t, m, patient)
	if d, err := e.Decide(t.Context(), value(t, map[string]any{"a": 1, "b": 1})); reasonOf(err) != ReasonConflict || d.Allowed {
		t.Fatalf("got %+v, %v", d, err)
	}
	if d, err := e.Decide(t.Context(), value(t, map[string]any{"b": 1})); err != nil || !d.Allowed {
		t.Fatalf("one rule alone: got %+v, %v", d, err)
	}
}

func TestDecideRefusesInputsThatItCannotBound(t *testing.T) {
	deep := any("x")
	for range maxInputDepth + 1 {
		deep = []any{deep}
	}
	e := activated(t, small(), Options{Timeout: time.Minute, MaxInputBytes: 10000})
	for name, input := range map[string]ast.Value{
		"much text":          value(t, map[string]any{"a": string(make([]byte, 10001))}),
		"much text in a key": value(t, map[string]any{string(make([]byte, 10001)): 1}),
		"many small values":  value(t, make([]any, 700)),
		"deep":               value(t, deep),
		"nothing":            nil,
		"a reference":        ast.MustParseRef("data.pipeguard"),
		"a variable inside":  ast.NewArray(ast.VarTerm("x")),
		"a call inside":      ast.NewObject([2]*ast.Term{ast.StringTerm("a"), ast.CallTerm(ast.VarTerm("f"))}),
	} {
		if d, err := e.Decide(t.Context(), input); reasonOf(err) != ReasonInputSize || d.Allowed {
			t.Errorf("%s: got %+v, %v", name, d, err)
		}
	}
	if _, err := e.Decide(t.Context(), value(t, map[string]any{"a": string(make([]byte, 9000))})); err != nil {
		t.Errorf("an input within the bounds: %v", err)
	}
}

func TestDecideRefusesWhenNoSlotBecomesFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := activated(t, small(), Options{MaxConcurrent: 1, Timeout: time.Second})
		done, err := e.slots.Take(t.Context(), turns.Sender{"another"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		d, err := e.Decide(t.Context(), ast.NewObject())
		if reasonOf(err) != ReasonOverload || d.Allowed || time.Since(start) != longest*time.Second {
			t.Fatalf("got %+v, %v after %v", d, err, time.Since(start))
		}

		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Millisecond); cancel() }() // on the bubble's clock
		start = time.Now()
		if _, err := e.Decide(ctx, ast.NewObject()); reasonOf(err) != ReasonCanceled || time.Since(start) != time.Millisecond {
			t.Fatalf("caller gone: got %v after %v", err, time.Since(start))
		}

		done()
		if d, err := e.Decide(t.Context(), ast.NewObject()); err != nil || !d.Allowed {
			t.Fatalf("slot free: got %+v, %v", d, err)
		}
		if done, err = e.slots.Take(t.Context(), turns.Sender{"another"}); err != nil {
			t.Fatal("a slot was not given back")
		}
		done()
	})
}

func TestASenderOfManyHoldsUpNoSenderOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		working := func() (func() time.Duration, func()) { // an evaluation takes some time
			time.Sleep(time.Millisecond)
			return func() time.Duration { return 0 }, func() {}
		}
		e := activated(t, small(), Options{MaxConcurrent: 1, Timeout: time.Second, ThreadTime: working})
		active, _ := e.Active()
		done, err := e.slots.Take(t.Context(), turns.Sender{"many"})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		var order []string
		for _, sender := range []string{"many", "many", "many", "one"} {
			all.Go(func() {
				if d, err := e.DecideWith(t.Context(), active, turns.Sender{sender}, ast.NewObject()); err != nil || !d.Allowed {
					t.Errorf("%+v, %v", d, err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, sender)
			})
			synctest.Wait()
		}
		done()
		all.Wait()
		if want := []string{"many", "one", "many", "many"}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
	})
}

func TestDecideRefusesForACallerThatIsGone(t *testing.T) {
	e := activated(t, small(), patient)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := e.Decide(ctx, ast.NewObject()); reasonOf(err) != ReasonCanceled || d.Allowed {
		t.Fatalf("got %+v, %v", d, err)
	}
}

// The time of a policy is its own; that of a caller says nothing about it.
func TestACallersDeadlineIsNoTimeoutOfThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := activated(t, small(), Options{MaxConcurrent: 1, Timeout: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		done, err := e.slots.Take(ctx, turns.Sender{"another"})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := e.Decide(ctx, ast.NewObject()); reasonOf(err) != ReasonCanceled || d.Allowed {
			t.Errorf("while it waited: %+v, %v", d, err)
		}
		done()
		if d, err := e.Decide(ctx, ast.NewObject()); reasonOf(err) != ReasonCanceled || d.Allowed {
			t.Errorf("before it began: %+v, %v", d, err)
		}
		stopped := &topdown.Error{Code: topdown.CancelErr}
		if f := evaluationFault(ctx, stopped); f.Reason != ReasonCanceled {
			t.Errorf("while it ran: %v", f)
		}
		own, release := within(t.Context(), time.Millisecond, func() time.Duration { return time.Hour })
		defer release()
		<-own.Done()
		if f := evaluationFault(own, stopped); f.Reason != ReasonTimeout || !ranOutOfTime(f) {
			t.Errorf("its own time: %v", f)
		}
		if f := evaluationFault(t.Context(), stopped); f.Reason != ReasonTimeout {
			t.Errorf("its own flag: %v", f)
		}
	})
}

func TestEvaluateTurnsAPanicIntoARefusal(t *testing.T) {
	v, err := evaluate(t.Context(), query{}, ast.NewObject(), topdown.NewCancel()) // a query that was never prepared
	if reasonOf(err) != ReasonPanic || v != nil {
		t.Fatalf("got %v, %v", v, err)
	}
}

func TestDecideWithKeepsToItsSnapshot(t *testing.T) {
	e := activated(t, small(), patient)
	before, _ := e.Active()
	if _, err := e.Activate(t.Context(), deciding(`{"allowed": false, "findings": []}`)); err != nil {
		t.Fatal(err)
	}
	if d, err := e.DecideWith(t.Context(), before, nil, ast.NewObject()); err != nil || !d.Allowed || d.Revision != before.Revision() {
		t.Fatalf("got %+v, %v", d, err)
	}
	if d, err := e.Decide(t.Context(), ast.NewObject()); err != nil || d.Allowed {
		t.Fatalf("the active one: got %+v, %v", d, err)
	}
}
