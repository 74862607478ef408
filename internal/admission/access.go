package admission

import (
	"errors"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// Access is what the PipePolicies that govern a pipe say of the container that mounts it, or of an object that names it otherwise, or what PipePolicies permit of the
// host: a HostProcess container as such, or a host path. It is the same for all mounts of one pipe or path by one container, which share it.
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
	// EndsSoon is true from WarnFrom on. Policies that ask for it instead of Now say the same of an object until then, see policy.Options.Remember.
	EndsSoon bool `json:"endsSoon"`
}

// AccessMiss is a subject that fits but for one field, as far as it was compared.
type AccessMiss struct {
	Policy  string `json:"policy"`
	Subject string `json:"subject"`
	// Field is namespace, serviceAccount, container, image, hostProcess, runAsUserName or hostPath: the first that does not fit, in this order.
	Field string `json:"field"`
	// Want are at most three of the values that would have fitted.
	Want []string `json:"want"`
}

// isHostPath says that a path leads to no pipe, and that PipePolicies can permit it as one of the host.
func (t *Target) isHostPath() bool {
	return !t.Guarded && t.Pipe == "" && (t.Place != "" || t.EqualPower == string(pipepath.PowerDirectory))
}

// maxMissValues is how many of the values that would have fitted a miss names.
const maxMissValues = 3

// ungoverned is the Access of a pipe that no policy governs: there are no subjects.
var ungoverned = &Access{Subjects: []AccessSubject{}, Nearest: []AccessMiss{}}

// maxMatches bounds the work of matching an object with subjects: one for each subject, and for each container and image in it.
const maxMatches = 1 << 22

var errTooManySubjects = errors.New("the object has too many containers to be matched with all subjects of the PipePolicies that concern them")

// permits fills in what policies say of the entries of an input. Its now is the input's. It returns an error if that takes too long.
func (s *Scope) permits(in *Input, now time.Time, allowance *jsonscan.Allowance) error {
	type asker struct {
		by        *governing
		container caller.Container
		asks      question
	}
	found, left := map[asker]*Access{}, maxMatches
	of := func(who asker) *Access {
		if who.by == nil || len(who.by.names) == 0 {
			return ungoverned
		}
		if known := found[who]; known != nil {
			return known
		}
		if allowance.Take(accessWeight) != nil {
			return ungoverned
		}
		c := caller.Declared(caller.Pod{Namespace: in.Namespace, ServiceAccount: in.ServiceAccount}, who.container)
		a := s.access(who.by, c, who.asks, now, &left)
		found[who] = a
		return a
	}
	host := s.host[in.Namespace]
	for i := range in.Mounts {
		m := &in.Mounts[i]
		c := caller.Container{Name: subjectName(m.Container, m.ContainerType), Image: m.Image, HostProcess: m.HostProcess, RunAsUserName: m.runAsUserName}
		if m.isHostPath() {
			m.Access = of(asker{host, c, question{ofHostPath, m.Path, m.SubPath}})
		} else {
			m.Access = of(asker{m.governing, c, question{what: ofMount}})
		}
	}
	for i := range in.Unmounted {
		if v := &in.Unmounted[i]; v.isHostPath() {
			v.Access = of(asker{by: host, asks: question{ofAccountHostPath, v.Path, ""}})
		} else {
			v.Access = of(asker{by: v.governing, asks: question{what: ofAccount}})
		}
	}
	for i := range in.PersistentVolumes { // for which there is no permission
		v := &in.PersistentVolumes[i]
		v.Access = of(asker{by: v.governing, asks: question{what: ofAccount}})
	}
	for i := range in.Containers {
		c := &in.Containers[i]
		if c.Access = ungoverned; c.HostProcess {
			c.Access = of(asker{host, caller.Container{Name: subjectName(c.Name, c.Type), Image: c.Image, HostProcess: true, RunAsUserName: c.RunAsUserName}, question{what: ofHostProcess}})
		}
	}
	switch {
	case allowance.Spent():
		return jsonscan.ErrAllowance
	case left < 0:
		return errTooManySubjects
	}
	return nil
}

// subjectName is the name of a container to a subject that lists containers. An ephemeral one has none: the lists are of the containers that
// manifests have, and a user who may add one to a pod, with any command, could give it any name that is free in the pod.
func subjectName(name, containerType string) string {
	if containerType == typeEphemeral {
		return ""
	}
	return name
}

// question is what is asked of the subjects of a policy. Of a host path, it is about the volume's path and the mount's subPath.
type question struct {
	what              aspect
	hostPath, subPath string
}

type aspect int

const (
	ofMount           aspect = iota // may the container mount a pipe?
	ofAccount                       // may a container of the pod's account?
	ofHostProcess                   // may the container be a HostProcess container?
	ofHostPath                      // may the container mount the path?
	ofAccountHostPath               // may a container of the pod's account?
)

// directory is what the host path is for certain; nil if that is not known. A variable in a subPath may be anything.
func (q question) directory() *pipepath.Directory {
	if d, ok := pipepath.MountedDirectory(q.hostPath, q.subPath); ok && !strings.Contains(q.subPath, "$(") {
		return &d
	}
	return nil
}

func (q question) of(h hosts) access.Question {
	switch q.what {
	case ofAccount:
		return access.OfAccount
	case ofHostProcess:
		return h.ofHostProcess
	case ofHostPath:
		return h.ofHostPath(q.directory())
	case ofAccountHostPath:
		return h.ofAccountHostPath(q.directory())
	case ofMount:
		return access.OfPipe
	}
	return func(*access.Subject, *caller.Container, access.Field) access.Field { return access.FieldNamespace } // nothing else is permitted
}

// access asks each of the policies that govern a pipe, or permit something of the host. left is what that may still take; when it is used up, nothing more is found.
func (s *Scope) access(by *governing, c caller.Caller, asks question, now time.Time, left *int) *Access {
	a := &Access{Action: by.action, PrivilegedSuffices: by.privilegedSuffices, Subjects: []AccessSubject{}, Nearest: []AccessMiss{}}
	best := map[Requirement]granted{}
	var ended granted
	var nearest access.Miss
	var nearestPolicy string
	question := asks.of(s.hosts)
	for _, name := range by.names {
		subjects := s.subjects[name]
		if *left -= subjects.Weight(c.Pod.Namespace); *left < 0 {
			break
		}
		is, was, miss := subjects.Match(&c, question, now)
		if is != nil {
			requirement := s.policies[name].Requirement
			if asks.what != ofMount && asks.what != ofAccount { // the requirement is one for pipes
				requirement = AllowedNamespace
			}
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
			a.Subjects = append(a.Subjects, g.entry(requirement, now))
		}
	}
	if ended.subject != nil {
		entry := ended.entry("", now)
		a.ended = &entry
	}
	if len(a.Subjects) == 0 && nearest.Subject != nil {
		want := nearest.Want()
		a.Nearest = append(a.Nearest, AccessMiss{Policy: nearestPolicy, Subject: nearest.Subject.Name, Field: string(nearest.Field), Want: want[:min(len(want), maxMissValues)]})
	}
	return a
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

func (g granted) entry(r Requirement, now time.Time) AccessSubject {
	at, warnFrom := expiry(g.subject)
	return AccessSubject{Policy: g.policy, Subject: g.subject.Name, Requirement: r, ExpiresAt: at, WarnFrom: warnFrom, EndsSoon: warnFrom != "" && instant(now) >= warnFrom}
}
