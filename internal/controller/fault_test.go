package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

func compileError(files ...string) error {
	e := &policy.ProblemsError{}
	for _, f := range files {
		e.Problems = append(e.Problems, policy.Problem{File: f, Line: 3, Col: 28, Code: "rego_unsafe_var_error", Message: "var x is unsafe"})
	}
	return e
}

func testError(files ...string) error {
	e := &policy.TestsError{}
	for _, f := range files {
		e.Failed = append(e.Failed, policy.TestResult{Package: "pipeguard.a_test", Name: "test_b", File: f, Line: 5, Message: "not true"})
	}
	return e
}

func objectError(kind, name string) error {
	return &policyset.ObjectError{Kind: kind, Name: name, Err: errors.New("spec.pipes: it is empty")}
}

func TestEachProblemIsThatOfItsObject(t *testing.T) {
	unsafe := v1alpha1.Problem{File: "rule.rego", Line: 3, Column: 28, Code: "rego_unsafe_var_error", Message: "var x is unsafe"}
	failed := v1alpha1.Problem{File: "rule_test.rego", Line: 5, Code: "test", Message: "pipeguard.a_test.test_b: not true"}
	empty := v1alpha1.Problem{Code: "object", Message: "spec.pipes: it is empty"}
	for name, c := range map[string]struct {
		err    error
		stage  stage
		own    map[named][]v1alpha1.Problem
		others int
	}{
		"success":                   {nil, stageActive, nil, 0},
		"a module":                  {compileError("policymodules/a/rule.rego"), stageCompile, map[named][]v1alpha1.Problem{{"PolicyModule", "a"}: {unsafe}}, 0},
		"two modules and the base":  {compileError("base.rego", "policymodules/a/rule.rego", "policymodules/b/rule.rego"), stageCompile, map[named][]v1alpha1.Problem{{"PolicyModule", "a"}: {unsafe}, {"PolicyModule", "b"}: {unsafe}}, 1},
		"the base":                  {compileError("base.rego"), stageCompile, nil, 1},
		"a limit":                   {&policy.ProblemsError{Problems: []policy.Problem{{Code: policy.CodeLimit, Message: "too much"}}}, stageCompile, nil, 1},
		"a test of a module":        {testError("policymodules/a/rule_test.rego"), stageTests, map[named][]v1alpha1.Problem{{"PolicyModule", "a"}: {failed}}, 0},
		"a test of the base":        {testError("base_test.rego"), stageTests, nil, 1},
		"an object":                 {errors.Join(objectError("PipePolicy", "p")), stageAssemble, map[named][]v1alpha1.Problem{{"PipePolicy", "p"}: {empty}}, 0},
		"namesakes of two kinds":    {errors.Join(objectError("PipePolicy", "p"), objectError("PolicyModule", "p")), stageAssemble, map[named][]v1alpha1.Problem{{"PipePolicy", "p"}: {empty}, {"PolicyModule", "p"}: {empty}}, 0},
		"an object among others":    {errors.Join(errors.Join(errDisk, objectError("PipePolicy", "p")), errDisk), stageAssemble, map[named][]v1alpha1.Problem{{"PipePolicy", "p"}: {empty}}, 2},
		"the base that is not read": {&unreadError{errDisk}, stageRead, nil, 1},
		"too little time":           {errSlow, stageTime, nil, 1},
		"a check":                   {errors.Join(fmt.Errorf("policy check %q: %w", "canary", errors.New("it is allowed"))), stageChecks, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := explain(c.err)
			if c.own == nil {
				c.own = map[named][]v1alpha1.Problem{}
			}
			if diff := cmp.Diff(c.own, f.own, cmp.AllowUnexported(named{})); diff != "" {
				t.Error(diff)
			}
			if f.stage != c.stage || len(f.others) != c.others {
				t.Errorf("stage %d, others %q", f.stage, f.others)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, strings.Repeat("ü€", 300)+fmt.Sprint(i))
	}
	got := lines(many)
	if len(got) > maxMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, "\nand 35 more") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := few([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e and 2 more" {
		t.Errorf("names %q", got)
	}
	if got := policyset.Clip("a\xffb", 10); got != "a\uFFFDb" {
		t.Errorf("not text: %q", got)
	}
	for n := 4; n < 40; n++ {
		if got := policyset.Clip(strings.Repeat("€", 20), n); len(got) > n || !utf8.ValidString(got) {
			t.Errorf("clip to %d: %q", n, got)
		}
	}
}

func TestPositionsReadAsEditorsReadThem(t *testing.T) {
	for want, p := range map[string]v1alpha1.Problem{
		"a.rego:3:4: c: m": {File: "a.rego", Line: 3, Column: 4, Code: "c", Message: "m"},
		"a.rego:3: c: m":   {File: "a.rego", Line: 3, Code: "c", Message: "m"},
		"a.rego: c: m":     {File: "a.rego", Code: "c", Message: "m"},
		"c: m":             {Code: "c", Message: "m"},
	} {
		if got := position(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
