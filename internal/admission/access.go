package admission

import (
	"errors"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Access is what the PipePolicies that govern a pipe say of the container that mounts it, or of an object that names it otherwise. It is the same for all
// mounts of one pipe by one container, which share it.
type Access struct {
	// Action is the strictest of the governing policies: Deny, Warn or Audit; empty where none governs.
	Action Action `json:"action"`
	// PrivilegedSuffices is true if each of them is content with a privileged container.
	PrivilegedSuffices bool `json:"privilegedSuffices"`
	// Subjects are those that the container is now, at most one for each requirement: the one whose permission lasts longest.
	// A volume that no container mounts has those of the pod's service account, a PersistentVolume has none.
	Subjects []AccessSubject `json:"subjects"`
	// Nearest is the subject that comes nearest where the container is none: one, or none where there is nothing to name.
	Nearest []AccessMiss `json:"nearest"`

	ended *AccessSubject // the last of the subjects that the container was
	term  *ast.Term
}

// AccessSubject is a subject that permits what is asked, if its requirement is met.
type AccessSubject struct {
	Policy  string `json:"policy"`
	Subject string `json:"subject"`
	// Requirement is the policy's: whether the container must be privileged besides.
	Requirement Requirement `json:"requirement"`
	// ExpiresAt is when the permission ends, WarnFrom when its end is near, in the form of Input.Now; both are empty for one that does not end.
	ExpiresAt string `json:"expiresAt"`
	WarnFrom  string `json:"warnFrom"`
}

// AccessMiss is a subject that fits but for one field, as far as it was compared.
type AccessMiss struct {
	Policy  string `json:"policy"`
	Subject string `json:"subject"`
	// Field is namespace, serviceAccount, container or image: the first that does not fit, in this order.
	Field string `json:"field"`
	// Want are at most three of the values that would have fitted.
	Want []string `json:"want"`
}

// maxMissValues is how many of the values that would have fitted a miss names.
const maxMissValues = 3

// ungoverned is the Access of a pipe that no policy governs: there are no subjects.
var ungoverned = (&Access{Subjects: []AccessSubject{}, Nearest: []AccessMiss{}}).withTerm()

// maxMatches bounds what it may take to hold an object against subjects: one for each subject that is looked at, and for each container and image in it.
const maxMatches = 1 << 22

var errTooManySubjects = errors.New("the object has too many containers to be held against all subjects of the PipePolicies that govern its pipes")

// permits fills in what policies say of the entries of an input. Its now is the input's. It returns an error if that takes too long.
func (s *Scope) permits(in *Input, now time.Time, allowance *jsonscan.Allowance) error {
	type asker struct {
		by               *governing
		container, image string
		isContainer      bool
	}
	found, left := map[asker]*Access{}, maxMatches
	of := func(t *Target, who asker) *Access {
		if who.by = t.governing; who.by == nil || len(who.by.names) == 0 {
			return ungoverned
		}
		if known := found[who]; known != nil {
			return known
		}
		if allowance.Take(accessWeight) != nil {
			return ungoverned
		}
		c := caller.Declared(caller.Pod{Namespace: in.Namespace, ServiceAccount: in.ServiceAccount}, caller.Container{Name: who.container, Image: who.image})
		a := s.access(who.by, c, who.isContainer, now, &left)
		found[who] = a
		return a
	}
	for i := range in.Mounts {
		m := &in.Mounts[i]
		m.Access = of(&m.Target, asker{container: m.Container, image: m.Image, isContainer: true})
	}
	for i := range in.Unmounted {
		v := &in.Unmounted[i]
		v.Access = of(&v.Target, asker{})
	}
	for i := range in.PersistentVolumes {
		v := &in.PersistentVolumes[i]
		v.Access = of(&v.Target, asker{})
	}
	switch {
	case allowance.Spent():
		return jsonscan.ErrAllowance
	case left < 0:
		return errTooManySubjects
	}
	return nil
}

// access asks each of the policies that govern a pipe. left is what that may still take; when it is used up, nothing more is found.
func (s *Scope) access(by *governing, c caller.Caller, isContainer bool, now time.Time, left *int) *Access {
	a := &Access{Action: by.action, PrivilegedSuffices: by.privilegedSuffices, Subjects: []AccessSubject{}, Nearest: []AccessMiss{}}
	best := map[Requirement]granted{}
	var ended granted
	var nearest access.Miss
	var nearestPolicy string
	for _, name := range by.names {
		subjects := s.subjects[name]
		if *left -= subjects.Weight(c.Pod.Namespace); *left < 0 {
			break
		}
		match := subjects.Match
		if !isContainer {
			match = subjects.MatchAccount
		}
		is, was, miss := match(c, now)
		if is != nil {
			requirement := s.policies[name].Requirement
			best[requirement] = best[requirement].or(granted{name, is})
		}
		if was != nil {
			ended = ended.or(granted{name, was})
		}
		if nearer := nearest.Nearer(miss); nearer != nearest {
			nearest, nearestPolicy = nearer, name
		}
	}
	for _, requirement := range []Requirement{AllowedNamespace, PrivilegedAndAllowedNamespace, PrivilegedOrAllowedNamespace} {
		if g := best[requirement]; g.subject != nil {
			a.Subjects = append(a.Subjects, g.entry(requirement))
		}
	}
	if ended.subject != nil {
		entry := ended.entry("")
		a.ended = &entry
	}
	if len(a.Subjects) == 0 && nearest.Subject != nil {
		want := nearest.Want()
		a.Nearest = append(a.Nearest, AccessMiss{Policy: nearestPolicy, Subject: nearest.Subject.Name, Field: string(nearest.Field), Want: want[:min(len(want), maxMissValues)]})
	}
	return a.withTerm()
}

// granted is a subject of a policy.
type granted struct {
	policy  string
	subject *access.Subject
}

// or is the one of two whose permission lasts longest.
func (g granted) or(o granted) granted {
	if access.Longest(g.subject, o.subject) == g.subject {
		return g
	}
	return o
}

func (g granted) entry(r Requirement) AccessSubject {
	at, warnFrom := expiry(g.subject)
	return AccessSubject{Policy: g.policy, Subject: g.subject.Name, Requirement: r, ExpiresAt: at, WarnFrom: warnFrom}
}

var (
	keyAction             = ast.StringTerm("action")
	keyPrivilegedSuffices = ast.StringTerm("privilegedSuffices")
	keySubjects           = ast.StringTerm("subjects")
	keyNearest            = ast.StringTerm("nearest")
	keyPolicy             = ast.StringTerm("policy")
	keySubject            = ast.StringTerm("subject")
	keyRequirement        = ast.StringTerm("requirement")
	keyExpiresAt          = ast.StringTerm("expiresAt")
	keyWarnFrom           = ast.StringTerm("warnFrom")
	keyWant               = ast.StringTerm("want")
)

func (a *Access) withTerm() *Access {
	a.term = ast.ObjectTerm(
		item{keyAction, text(string(a.Action))},
		item{keyPrivilegedSuffices, boolean(a.PrivilegedSuffices)},
		item{keySubjects, list(a.Subjects, AccessSubject.term)},
		item{keyNearest, list(a.Nearest, AccessMiss.term)},
	)
	return a
}

func (n AccessMiss) term() *ast.Term {
	return ast.ObjectTerm(item{keyPolicy, text(n.Policy)}, item{keySubject, text(n.Subject)}, item{keyField, text(n.Field)}, item{keyWant, list(n.Want, text)})
}

func (s AccessSubject) term() *ast.Term {
	return ast.ObjectTerm(
		item{keyPolicy, text(s.Policy)},
		item{keySubject, text(s.Subject)},
		item{keyRequirement, text(string(s.Requirement))},
		item{keyExpiresAt, text(s.ExpiresAt)},
		item{keyWarnFrom, text(s.WarnFrom)},
	)
}
