package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

const day = 24 * time.Hour

func TestAPermissionEndsAtItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		subject v1alpha1.Subject
		want    standing
	}{
		"without an end":        {lasting("s"), open},
		"long before":           {ending("s", 30*day), open},
		"a second before seven": {ending("s", admission.ExpiryWarning+time.Second), open},
		"seven days before":     {ending("s", admission.ExpiryWarning), expiring},
		"a second before":       {ending("s", time.Second), expiring},
		"at its end":            {ending("s", 0), expired},
		"long after":            {ending("s", -30*day), expired},
	} {
		if got := standingOf(c.subject, noon); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestSubjectsAreCounted(t *testing.T) {
	subjects := []v1alpha1.Subject{lasting("a"), ending("b", 8*day), ending("c", day), ending("d", 0), ending("e", -day)}
	want := v1alpha1.SubjectCounts{Open: 3, ExpiringSoon: 1, Expired: 2}
	if diff := cmp.Diff(want, countSubjects(subjects, noon)); diff != "" {
		t.Error(diff)
	}
	if got := countSubjects(nil, noon); got != (v1alpha1.SubjectCounts{}) {
		t.Errorf("of nobody: %+v", got)
	}
}

func TestTheNextChangeIsTheFirstOfAll(t *testing.T) {
	for name, c := range map[string]struct {
		subjects []v1alpha1.Subject
		want     time.Duration
		ok       bool
	}{
		"nobody":             {nil, 0, false},
		"no end":             {[]v1alpha1.Subject{lasting("a")}, 0, false},
		"all over":           {[]v1alpha1.Subject{ending("a", 0), ending("b", -day)}, 0, false},
		"a warning":          {[]v1alpha1.Subject{ending("a", 10*day), lasting("b")}, 3 * day, true},
		"an end":             {[]v1alpha1.Subject{ending("a", 2*day), ending("b", 10*day)}, 2 * day, true},
		"a warning before":   {[]v1alpha1.Subject{ending("a", 2*day), ending("b", 8*day)}, day, true},
		"the warning is now": {[]v1alpha1.Subject{ending("a", admission.ExpiryWarning)}, admission.ExpiryWarning, true},
	} {
		if got, ok := untilNextStanding(c.subjects, noon); got != c.want || ok != c.ok {
			t.Errorf("%s: %s %v, want %s %v", name, got, ok, c.want, c.ok)
		}
	}
}

// Whoever waits for the next change, again and again, meets every standing at its first moment and then waits no more.
func TestWaitingForTheNextChangeMeetsAll(t *testing.T) {
	subjects := []v1alpha1.Subject{ending("a", 9*day), ending("b", 8*day+time.Second), ending("c", -day), lasting("d")}
	now, changes := noon, 0
	for {
		wait, ok := untilNextStanding(subjects, now)
		if !ok {
			break
		}
		before := countSubjects(subjects, now.Add(wait-1))
		now = now.Add(wait)
		if countSubjects(subjects, now) == before {
			t.Errorf("nothing changes at %s", now)
		}
		if changes++; changes > 10 {
			t.Fatal("it never ends")
		}
	}
	if changes != 4 {
		t.Errorf("%d changes", changes)
	}
}
