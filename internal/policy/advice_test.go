package policy

import (
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
	for name, c := range map[string]struct {
		rule string
		want []Finding
	}{
		"it warns":              {`{"code": "X1", "effect": "warn"}`, []Finding{{Code: "X1", Effect: EffectWarn}}},
		"it has nothing to say": {`{"code": "X1", "effect": "warn"} if input.nothing`, []Finding{}},
		"a builtin fails":       {`{"code": "X1", "effect": "warn"} if to_number(input.n) == 1`, failed("builtin")},
		"it denies":             {`{"code": "X1", "effect": "deny"}`, failed("finding X1 denies, which advice cannot")},
		"its effect is unknown": {`{"code": "X1", "effect": "block"}`, failed("type")},
		"it is not a finding":   {`"X1"`, failed("type")},
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
