package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policy"
)

var (
	keyA = ObjectKey{Kind: "PolicyModule", Name: "a", UID: "uid-a"}
	keyP = ObjectKey{Kind: "PipePolicy", Name: "p", UID: "uid-p"}
)

// attempted is the outcome of an attempt with generation 2 of both objects. On error generation 1 of both is active.
func attempted(err error) Outcome {
	o := Outcome{Revision: "sha256:1", Attempted: "x", Err: err, Generations: map[ObjectKey]int64{keyA: 2, keyP: 2}}
	o.Active = o.Generations
	if err != nil {
		o.Active = map[ObjectKey]int64{keyA: 1, keyP: 1}
	}
	return o
}

func statusInputOf(o Outcome, c ReplicaCount) statusInput {
	return statusInput{outcome: o, fault: explain(o.Err), replicas: c, now: noon}
}

// show is conditions in short: one a line, with the first line of the message.
func show(conditions []metav1.Condition) []string {
	var out []string
	for _, c := range conditions {
		message, _, _ := strings.Cut(c.Message, "\n")
		out = append(out, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, message))
	}
	return out
}

var three = ReplicaCount{Live: 3, Current: 3}

func TestStatusSaysWhatBecameOfAnObject(t *testing.T) {
	const (
		compiles = "Compiled True Compiled: all policies compile with it among them"
		passes   = "TestsPassed True TestsPassed: all tests and the built-in checks pass"
		notRun   = "TestsPassed Unknown NotRun: what does not compile is not tested"
		inactive = "Published False NotActive: it is not active: see Compiled and TestsPassed"
		unsafe   = "rule.rego:3:28: rego_unsafe_var_error: var x is unsafe"
		failed   = "rule_test.rego:5: test: pipeguard.a_test.test_b: not true"
	)
	for name, c := range map[string]struct {
		err      error
		replicas ReplicaCount
		key      ObjectKey
		counts   string
		want     []string
	}{
		"it decides everywhere": {nil, three, keyA, "3/3", []string{
			"Ready True Enforced: it decides on every replica", compiles, passes, "Published True Published: 3 of 3 replicas decide by it"}},
		"a replica is behind": {nil, ReplicaCount{Live: 3, Current: 2, Behind: []string{"w-3"}}, keyA, "2/3", []string{
			"Ready False RollingOut: 2 of 3 replicas decide by it; waiting for w-3", compiles, passes,
			"Published False RollingOut: 2 of 3 replicas decide by it; waiting for w-3"}},
		"a replica refuses": {nil, ReplicaCount{Live: 3, Current: 1, Behind: []string{"w-2", "w-3"}, Refusing: []string{"w-3"}}, keyP, "1/3", []string{
			"Ready False RollingOut: 1 of 3 replicas decide by it; refused by w-3: see its log", compiles, passes,
			"Published False RollingOut: 1 of 3 replicas decide by it; refused by w-3: see its log"}},
		"no replica has reported": {nil, ReplicaCount{}, keyA, "0/0", []string{
			"Ready Unknown NoReplicas: no replica of the webhook has reported", compiles, passes,
			"Published Unknown NoReplicas: no replica of the webhook has reported"}},
		"it does not compile": {compileError("policymodules/a/rule.rego"), three, keyA, "0/3", []string{
			"Ready False NotCompiled: " + unsafe, "Compiled False NotCompiled: " + unsafe, notRun, inactive}},
		"another does not compile": {compileError("policymodules/a/rule.rego"), three, keyP, "0/3", []string{
			"Ready False Waits: waits: PolicyModule a does not compile", "Compiled False Waits: waits: PolicyModule a does not compile", notRun, inactive}},
		"two others do not compile": {compileError("policymodules/b/rule.rego", "policymodules/c/rule.rego", "policymodules/c/x.rego"), three, keyA, "0/3", []string{
			"Ready False Waits: waits: PolicyModule b, c do not compile", "Compiled False Waits: waits: PolicyModule b, c do not compile", notRun, inactive}},
		"it and another do not compile": {compileError("policymodules/a/rule.rego", "policymodules/b/rule.rego"), three, keyA, "0/3", []string{
			"Ready False NotCompiled: " + unsafe, "Compiled False NotCompiled: " + unsafe, notRun, inactive}},
		"the base does not compile with it": {compileError("base.rego"), three, keyA, "0/3", []string{
			"Ready False NotCompiled: policies do not compile with it among them:", "Compiled False NotCompiled: policies do not compile with it among them:", notRun, inactive}},
		"its tests fail": {testError("policymodules/a/rule_test.rego"), three, keyA, "0/3", []string{
			"Ready False TestsFailed: " + failed, compiles, "TestsPassed False TestsFailed: " + failed, inactive}},
		"tests of another fail": {testError("policymodules/a/rule_test.rego"), three, keyP, "0/3", []string{
			"Ready False Waits: waits: PolicyModule a does not pass its tests", compiles, "TestsPassed False Waits: waits: PolicyModule a does not pass its tests", inactive}},
		"tests of the base fail with it": {testError("base_test.rego"), three, keyP, "0/3", []string{
			"Ready False TestsFailed: tests fail with it among the policies:", compiles, "TestsPassed False TestsFailed: tests fail with it among the policies:", inactive}},
		"it is not valid": {objectError("PipePolicy", "p"), three, keyP, "0/3", []string{
			"Ready False NotValid: object: spec.pipes: it is empty", "Compiled False NotValid: object: spec.pipes: it is empty", notRun, inactive}},
		"another is not valid": {objectError("PipePolicy", "p"), three, keyA, "0/3", []string{
			"Ready False Waits: waits: PipePolicy p is not valid", "Compiled False Waits: waits: PipePolicy p is not valid", notRun, inactive}},
		"a namesake of another kind is not valid": {objectError("PipePolicy", "a"), three, keyA, "0/3", []string{
			"Ready False Waits: waits: PipePolicy a is not valid", "Compiled False Waits: waits: PipePolicy a is not valid", notRun, inactive}},
		"a check does not hold": {errors.New(`policy check "canary": it is allowed`), three, keyA, "0/3", []string{
			`Ready False ChecksFailed: policy check "canary": it is allowed`, compiles, `TestsPassed False ChecksFailed: policy check "canary": it is allowed`, inactive}},
		"there was too little time": {errSlow, three, keyA, "0/3", []string{
			"Ready False TimedOut: it will be tried again: " + errSlow.Error(), compiles, "TestsPassed Unknown TimedOut: it will be tried again: " + errSlow.Error(), inactive}},
		"the base cannot be read": {&unreadError{errDisk}, three, keyA, "0/3", []string{
			"Ready False NotRead: waits: input/output error", "Compiled Unknown NotRead: waits: input/output error", notRun, inactive}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := statusInputOf(attempted(c.err), c.replicas).status(c.key, 2, v1alpha1.PolicyStatus{})
			if !ok {
				t.Fatal("nothing is known of it")
			}
			if diff := cmp.Diff(c.want, show(got.Conditions)); diff != "" {
				t.Error(diff)
			}
			if got.Replicas.Summary != c.counts || got.Replicas.Live != c.replicas.Live || got.ObservedGeneration != 2 || got.Revision != "sha256:1" {
				t.Errorf("status %+v", got)
			}
			for _, condition := range got.Conditions {
				if condition.ObservedGeneration != 2 || !condition.LastTransitionTime.Time.Equal(noon) {
					t.Errorf("condition %+v", condition)
				}
			}
		})
	}
}

func TestWhatIsActiveStaysReadyWhenAnotherIsRefused(t *testing.T) {
	o := attempted(compileError("policymodules/b/rule.rego"))
	o.Active = map[ObjectKey]int64{keyA: 2}
	got, ok := statusInputOf(o, three).status(keyA, 2, v1alpha1.PolicyStatus{})
	before, _ := statusInputOf(attempted(nil), three).status(keyA, 2, v1alpha1.PolicyStatus{})
	if diff := cmp.Diff(before, got); diff != "" || !ok {
		t.Error(diff)
	}
}

func TestWhatDecidesAndNoLongerCompilesSaysBoth(t *testing.T) {
	o := attempted(compileError("policymodules/a/rule.rego")) // because the base is another
	o.Active = map[ObjectKey]int64{keyA: 2}
	got, _ := statusInputOf(o, three).status(keyA, 2, v1alpha1.PolicyStatus{})
	want := []string{
		"Ready True LastGood: it decides on every replica, but not together with what changed since: see Compiled and TestsPassed",
		"Compiled False NotCompiled: rule.rego:3:28: rego_unsafe_var_error: var x is unsafe",
		"TestsPassed Unknown NotRun: what does not compile is not tested",
		"Published True Published: 3 of 3 replicas decide by it",
	}
	if diff := cmp.Diff(want, show(got.Conditions)); diff != "" {
		t.Error(diff)
	}
}

func TestAStatusIsNotWrittenBeforeTheGenerationWasAttempted(t *testing.T) {
	before := v1alpha1.PolicyStatus{ObservedGeneration: 2, Revision: "sha256:0"}
	recreated := keyA
	recreated.UID = "another"
	for name, c := range map[string]struct {
		key        ObjectKey
		generation int64
	}{
		"a newer generation":            {keyA, 3},
		"an older one, of a late cache": {keyA, 1},
		"an object that is not known":   {ObjectKey{Kind: "PolicyModule", Name: "new", UID: "uid-new"}, 1},
		"a namesake of one that was":    {recreated, 2},
		"an object of the other kind":   {ObjectKey{Kind: "PipePolicy", Name: "a", UID: "uid-a"}, 2},
	} {
		got, ok := statusInputOf(attempted(nil), three).status(c.key, c.generation, before)
		if diff := cmp.Diff(before, got); ok || diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTransitionTimesAreThoseOfTransitions(t *testing.T) {
	first, _ := statusInputOf(attempted(compileError("policymodules/a/rule.rego")), three).status(keyA, 2, v1alpha1.PolicyStatus{})
	later := statusInputOf(attempted(testError("policymodules/a/rule_test.rego")), ReplicaCount{Live: 2, Current: 2})
	later.now = noon.Add(time.Hour + 999*time.Millisecond)
	second, _ := later.status(keyA, 2, first)
	want := []string{"Ready 12:00:00", "Compiled 13:00:00", "TestsPassed 13:00:00", "Published 12:00:00"} // Ready stays False for another reason
	var got []string
	for _, c := range second.Conditions {
		got = append(got, c.Type+" "+c.LastTransitionTime.Format("15:04:05.999"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	later.now = later.now.Add(time.Hour)
	third, _ := later.status(keyA, 2, second)
	if diff := cmp.Diff(second, third); diff != "" {
		t.Errorf("time alone changes a status: %s", diff)
	}
}

func TestAModuleListsItsOwnProblems(t *testing.T) {
	e := &policy.ProblemsError{}
	for i := range 80 {
		e.Problems = append(e.Problems, policy.Problem{File: fmt.Sprintf("policymodules/a/f%d.rego", i), Line: i + 1, Col: 2, Code: "c", Message: strings.Repeat("€", 4000)})
	}
	e.Problems = append(e.Problems, policy.Problem{File: "policymodules/b/rule.rego", Code: "c"}, policy.Problem{File: "base.rego", Code: "c"})
	p := statusInputOf(attempted(e), three)
	a := policyModule("a", 2, "")
	got, ok := p.policyModuleStatus(&a)
	if !ok || len(got.Problems) != maxProblems {
		t.Fatalf("%d problems", len(got.Problems))
	}
	for i, problem := range got.Problems {
		if problem.File != fmt.Sprintf("f%d.rego", i) || problem.Line != int32(i+1) || len(problem.Message) > maxProblem {
			t.Errorf("problem %+v", problem)
		}
	}
	for _, c := range got.Conditions {
		if len(c.Message) > maxMessage {
			t.Errorf("%s has a message of %d bytes", c.Type, len(c.Message))
		}
	}
	a.Status = got
	if mended, _ := statusInputOf(attempted(nil), three).policyModuleStatus(&a); mended.Problems != nil {
		t.Errorf("problems stay: %v", mended.Problems)
	}
}

func TestAPipePolicyCountsSubjectsAndViolations(t *testing.T) {
	p := pipePolicy("p", 2, lasting("l"), ending("a", day), ending("b", -day))
	seven := int32(7)
	got, ok := statusInputOf(attempted(nil), three).pipePolicyStatus(&p, &seven, nil)
	if want := (v1alpha1.SubjectCounts{Open: 2, ExpiringSoon: 1, Expired: 1}); !ok || got.Subjects != want || *got.Violations != 7 {
		t.Errorf("status %+v", got)
	}
	if got, _ = statusInputOf(attempted(nil), three).pipePolicyStatus(&p, nil, nil); got.Violations != nil {
		t.Error("what is not known is called a number")
	}
}
