package controller

import (
	"time"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// standing is the state of a subject's permission. Later values are later in time.
type standing int

const (
	open standing = iota
	expiring
	expired
)

// standingOf has the bounds that the policies have: at expiresAt the permission is over.
func standingOf(s v1alpha1.Subject, now time.Time) standing {
	switch {
	case s.ExpiresAt == nil:
		return open
	case !now.Before(s.ExpiresAt.Time):
		return expired
	case !now.Before(s.ExpiresAt.Add(-admission.ExpiryWarning)):
		return expiring
	}
	return open
}

// countSubjects counts as the status does: those that expire soon are open as well.
func countSubjects(subjects []v1alpha1.Subject, now time.Time) v1alpha1.SubjectCounts {
	var c v1alpha1.SubjectCounts
	for _, s := range subjects {
		switch standingOf(s, now) {
		case open:
			c.Open++
		case expiring:
			c.Open++
			c.ExpiringSoon++
		case expired:
			c.Expired++
		}
	}
	return c
}

// untilNextStanding is how long it takes until a subject's standing changes, and false if none does.
func untilNextStanding(subjects []v1alpha1.Subject, now time.Time) (time.Duration, bool) {
	var next time.Duration
	found := false
	for _, s := range subjects {
		if s.ExpiresAt == nil {
			continue
		}
		for _, at := range []time.Time{s.ExpiresAt.Add(-admission.ExpiryWarning), s.ExpiresAt.Time} {
			if left := at.Sub(now); left > 0 && (!found || left < next) {
				next, found = left, true
			}
		}
	}
	return next, found
}
