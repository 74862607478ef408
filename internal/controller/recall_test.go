package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// reasons are what notes are about, in short.
func reasons(notes []note) []string {
	out := []string{}
	for _, n := range notes {
		text := n.reason
		if n.subject != "" {
			text += " " + n.subject
		}
		out = append(out, text)
	}
	return out
}

func TestTheEndOfASubjectIsToldOnce(t *testing.T) {
	subjects := []v1alpha1.Subject{lasting("always"), ending("a", 8*day), ending("b", day)}
	p := pipePolicy("p", 1, subjects...)
	r := recallPipePolicy(&p)
	for _, step := range []struct {
		at   time.Duration
		want []string
	}{
		{0, []string{"SubjectExpiring b"}},
		{time.Minute, []string{}},
		{day - 1, []string{}},
		{day, []string{"SubjectExpiring a", "SubjectExpired b"}},
		{2 * day, []string{}},
		{0, []string{}}, // a clock that was set back
		{day, []string{}},
		{8 * day, []string{"SubjectExpired a"}},
		{80 * day, []string{}},
	} {
		var notes []note
		r, notes = r.withSubjects(subjects, noon.Add(step.at))
		if diff := cmp.Diff(step.want, reasons(notes)); diff != "" {
			t.Errorf("after %s: %s", step.at, diff)
		}
	}
}

func TestTheEndOfAProcessNamesItsProgram(t *testing.T) {
	s := ending("a", 0)
	s.Namespace, s.Process = "", &v1alpha1.NodeProcess{Account: "S-1-5-18", Program: `C:\agent.exe`}
	for is, verb := range map[standing]string{expiring: "ends", expired: "ended"} {
		if n, ok := subjectNote(s, is); !ok || !strings.HasPrefix(n.text, `the permission of subject "a" (program C:\agent.exe of nodes) `+verb+" at ") {
			t.Errorf("%+v", n)
		}
	}
}

func TestAnExceptionThatWasExtendedIsANewOne(t *testing.T) {
	p := pipePolicy("p", 1, ending("a", 0))
	r, notes := recallPipePolicy(&p).withSubjects(p.Spec.Subjects, noon)
	if diff := cmp.Diff([]string{"SubjectExpired a"}, reasons(notes)); diff != "" {
		t.Fatal(diff)
	}
	r, notes = r.withSubjects([]v1alpha1.Subject{ending("a", day)}, noon)
	if diff := cmp.Diff([]string{"SubjectExpiring a"}, reasons(notes)); diff != "" {
		t.Fatal(diff)
	}
	if _, notes = r.withSubjects([]v1alpha1.Subject{ending("a", day)}, noon.Add(day)); len(notes) != 1 {
		t.Errorf("its end is not told: %v", notes)
	}
}

// A leader that begins knows the counts of the status alone. For every moment at which a former leader wrote them, and
// every later one, it tells exactly what happened in between.
func TestANewLeaderTellsWhatTheFormerDidNot(t *testing.T) {
	subjects := []v1alpha1.Subject{ending("c", 9*day), lasting("l"), ending("a", -day), ending("b", 2*day), ending("d", 9*day)}
	for wrote := -20; wrote < 24; wrote++ {
		for begins := wrote; begins < 24; begins++ {
			then, now := noon.Add(time.Duration(wrote)*day), noon.Add(time.Duration(begins)*day)
			p := pipePolicy("p", 4, subjects...)
			p.Status.ObservedGeneration = 4
			p.Status.Subjects = countSubjects(subjects, then)
			_, notes := recallPipePolicy(&p).withSubjects(subjects, now)
			want := []string{}
			for _, s := range subjects {
				was, is := standingOf(s, then), standingOf(s, now)
				if is != was {
					want = append(want, map[standing]string{expiring: "SubjectExpiring ", expired: "SubjectExpired "}[is]+s.Name)
				}
			}
			if diff := cmp.Diff(want, reasons(notes)); diff != "" {
				t.Fatalf("written on day %d, begun on day %d: %s", wrote, begins, diff)
			}
		}
	}
}

func TestCountsOfAnotherGenerationTellNothing(t *testing.T) {
	p := pipePolicy("p", 5, ending("new", -day))
	p.Status.ObservedGeneration = 4
	p.Status.Subjects = v1alpha1.SubjectCounts{Expired: 1}
	_, notes := recallPipePolicy(&p).withSubjects(p.Spec.Subjects, noon)
	if diff := cmp.Diff([]string{"SubjectExpired new"}, reasons(notes)); diff != "" {
		t.Error(diff)
	}
}

func TestEventsOfTwoSubjectsAreKeptApart(t *testing.T) {
	p := pipePolicy("p", 1, ending("a", 0), ending("b", 0))
	_, notes := recallPipePolicy(&p).withSubjects(p.Spec.Subjects, noon)
	if len(notes) != 2 || notes[0].fieldPath() == notes[1].fieldPath() || notes[0].fieldPath() != "spec.subjects{a}" {
		t.Errorf("notes %+v", notes)
	}
}

// status is one with these conditions.
func status(generation int64, compiled, tested, published metav1.ConditionStatus, reason, message string) v1alpha1.PolicyStatus {
	return v1alpha1.PolicyStatus{ObservedGeneration: generation, Revision: "sha256:1", Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionCompiled, Status: compiled, Reason: reason, Message: message},
		{Type: v1alpha1.ConditionTestsPassed, Status: tested, Reason: reason, Message: message},
		{Type: v1alpha1.ConditionPublished, Status: published},
	}}
}

func TestTransitionsAreToldOnce(t *testing.T) {
	const yes, no, maybe = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	all := func(g int64) v1alpha1.PolicyStatus { return status(g, yes, yes, yes, "Compiled", "") }
	rolling := func(g int64) v1alpha1.PolicyStatus { return status(g, yes, yes, no, "Compiled", "") }
	broken := func(g int64, message string) v1alpha1.PolicyStatus {
		return status(g, no, maybe, no, ReasonNotCompiled, message)
	}
	waits := status(2, no, maybe, no, ReasonWaits, "waits: PolicyModule x does not compile")
	slow := status(2, yes, maybe, no, ReasonTimedOut, "")
	for name, c := range map[string]struct {
		before, after v1alpha1.PolicyStatus
		want          []string
	}{
		"nothing happens":                  {all(1), all(1), []string{}},
		"a new object":                     {v1alpha1.PolicyStatus{}, all(1), []string{"Activated", "Published"}},
		"a new object, step by step":       {v1alpha1.PolicyStatus{}, rolling(1), []string{"Activated"}},
		"the second step":                  {rolling(1), all(1), []string{"Published"}},
		"a new generation":                 {all(1), rolling(2), []string{"Activated"}},
		"a new replica starts":             {all(1), rolling(1), []string{}},
		"a new generation is refused":      {all(1), broken(2, "a"), []string{"Refused"}},
		"it is refused as before":          {broken(2, "a"), broken(2, "a"), []string{}},
		"it is refused for something else": {broken(2, "a"), broken(2, "b"), []string{"Refused"}},
		"the next is refused as well":      {broken(2, "a"), broken(3, "a"), []string{"Refused"}},
		"it waits":                         {all(1), waits, []string{"Waits"}},
		"it still waits":                   {waits, waits, []string{}},
		"it waits no more":                 {waits, all(2), []string{"Activated", "Published"}},
		"there was no time":                {all(1), slow, []string{}},
		"there was time again":             {slow, all(2), []string{"Activated", "Published"}},
	} {
		t.Run(name, func(t *testing.T) {
			was := recallStatus("u", c.before)
			if diff := cmp.Diff(c.want, reasons(transitions(c.before, c.after, was.published))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAReplicaThatComesAndGoesPublishesNothingAnew(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	all, rolling := status(1, yes, yes, yes, "", ""), status(1, yes, yes, no, "", "")
	r := recallStatus("u", all)
	r = r.withStatus(rolling)
	if notes := transitions(rolling, all, r.published); len(notes) != 0 {
		t.Errorf("notes %+v", notes)
	}
}
