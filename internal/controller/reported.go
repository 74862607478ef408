package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// reportedEvents are what was told of an object already, so that Events are not repeated.
type reportedEvents struct {
	uid       types.UID
	published int64 // the generation that was last called published
	subjects  map[string]reported
}

// told is what was said of a subject. Another end makes it a new exception.
type reported struct {
	ends     time.Time
	standing standing
}

// recallStatus is what the status shows to have been told: all that a leader knows that has only begun.
func recallStatus(uid types.UID, s v1alpha1.PolicyStatus) reportedEvents {
	r := reportedEvents{uid: uid, subjects: map[string]reported{}}
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionPublished) {
		r.published = s.ObservedGeneration
	}
	return r
}

// recallPipePolicy adds the subjects. The status has only their numbers; but since they expire in the order of their
// ends, the numbers tell which ones they were, as long as the subjects are the same.
func recallPipePolicy(p *v1alpha1.PipePolicy) reportedEvents {
	r := recallStatus(p.UID, p.Status.PolicyStatus)
	if p.Status.ObservedGeneration != p.Generation {
		return r
	}
	var ending []v1alpha1.Subject
	for _, s := range p.Spec.Subjects {
		if s.ExpiresAt != nil {
			ending = append(ending, s)
		}
	}
	slices.SortStableFunc(ending, func(a, b v1alpha1.Subject) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt.Time), cmp.Compare(a.Name, b.Name))
	})
	gone, going := int(p.Status.Subjects.Expired), int(p.Status.Subjects.ExpiringSoon)
	for i, s := range ending {
		switch {
		case i < gone:
			r.subjects[s.Name] = reported{s.ExpiresAt.Time, expired}
		case i < gone+going:
			r.subjects[s.Name] = reported{s.ExpiresAt.Time, expiring}
		}
	}
	return r
}

// withStatus are the events after transitions were told.
func (r reportedEvents) withStatus(after v1alpha1.PolicyStatus) reportedEvents {
	if isActive(after) && meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionPublished) {
		r.published = after.ObservedGeneration
	}
	return r
}

// withSubjects returns what is to be told of subjects now, and the events after that.
func (r reportedEvents) withSubjects(subjects []v1alpha1.Subject, now time.Time) (reportedEvents, []note) {
	var out []note
	next := make(map[string]reported, len(subjects))
	for _, s := range subjects {
		if s.ExpiresAt == nil {
			continue
		}
		is := reported{s.ExpiresAt.Time, standingOf(s, now)}
		was := r.subjects[s.Name]
		if !was.ends.Equal(is.ends) {
			was.standing = open
		}
		next[s.Name] = is
		if is.standing <= was.standing { // a clock that was set back tells nothing anew
			next[s.Name] = reported{is.ends, was.standing}
			continue
		}
		if n, ok := subjectNote(s, is.standing); ok {
			out = append(out, n)
		}
	}
	r.subjects = next
	return r, out
}

func subjectNote(s v1alpha1.Subject, now standing) (note, bool) {
	ends, of := s.ExpiresAt.UTC().Format(time.RFC3339), "namespace "+s.Namespace
	if s.Process != nil {
		of = "program " + s.Process.Program + " of nodes"
	}
	n := note{kind: corev1.EventTypeWarning, action: "Expire", subject: s.Name}
	switch now {
	case expiring:
		n.reason = EventSubjectExpiring
		n.text = fmt.Sprintf("the permission of subject %q (%s) ends at %s; owner: %s; reason: %s", s.Name, of, ends, s.Owner, s.Reason)
	case expired:
		n.reason = EventSubjectExpired
		n.text = fmt.Sprintf("the permission of subject %q (%s) ended at %s; owner: %s; reason: %s", s.Name, of, ends, s.Owner, s.Reason)
	case open:
		return n, false
	}
	n.text = policyset.Clip(n.text, maxMessage)
	return n, true
}
