package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// longWay is a module whose rule "long" has some 250,000 expressions on the way to its result, none of which makes anything, behind the expression.
func longWay(leaf string) map[string]string {
	text := "package pipeguard.admission\n\nlong if f0(1)\n\nset contains \"a\"\n\n"
	for d := range 4 {
		text += fmt.Sprintf("f%d(x) if {\n", d)
		if d == 3 {
			text += "\tx != 0\n"
		}
		for i := range 250 {
			switch {
			case d == 3:
				text += "\t" + strings.ReplaceAll(leaf, "N", fmt.Sprint(-i-1)) + "\n"
			case i < 10:
				text += fmt.Sprintf("\tf%d([x, %d])\n", d+1, i)
			}
		}
		text += "}\n\n"
	}
	return map[string]string{"long.rego": text}
}

var leaves = map[string]string{"a comparison": "x != N", "a member": `"a" in set`, "a reference": "input.a", "a parameter": "data.pipeguard.parameters.a", "parts": "[_, _] = [x, N]"}

// A module of 5 kB ended the process: each expression on the way to a result lies on the stack.
func TestAStackWithoutEndEndsTheEvaluation(t *testing.T) {
	WithoutRaceDetector(t)
	for name, leaf := range leaves {
		t.Run(name, func(t *testing.T) {
			m := deciding(`{"allowed": count([1 | long]) == 1, "findings": []}`).with(longWay(leaf))
			m.Data = map[string]any{"pipeguard": map[string]any{"parameters": map[string]any{"a": "x"}}}
			d, err := activated(t, m, patient).Decide(t.Context(), value(t, map[string]any{"a": "x"}))
			if reasonOf(err) != ReasonMemory || d.Allowed || !strings.Contains(fmt.Sprint(err), errDeep.Error()) {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

func TestAStackWithoutEndInATestFailsTheTest(t *testing.T) {
	WithoutRaceDetector(t)
	for name, leaf := range leaves {
		m := small().with(longWay(leaf)).with(map[string]string{"s_test.rego": "package s_test\n\ntest_s if data.pipeguard.admission.long with input as {\"a\": 1} with data.pipeguard.parameters as {\"a\": 1}\n"})
		results, _, err := Try(t.Context(), m, patient)
		if err != nil {
			t.Fatal(err)
		}
		failed := slices.IndexFunc(results, func(r TestResult) bool { return !r.Passed })
		if failed < 0 || results[failed].Name != "test_s" || results[failed].Message != errDeep.Error() {
			t.Errorf("%s: got %+v", name, results)
		}
	}
}
