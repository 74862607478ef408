package access

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Subject is containers of pods in one namespace, narrowed by each list that is not empty, or a process of the node; until when it is one, and what it may do.
type Subject struct {
	// Name tells the subjects of a policy apart.
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	// ServiceAccounts of the pods.
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// Containers are names of containers. At admission they are none of ephemeral ones.
	Containers []string `json:"containers,omitempty"`
	// Images as SpellImage takes them.
	Images []string `json:"images,omitempty"`
	// HostProcess permits HostProcess containers; nil permits none. Only admission asks for it, and no bundle has it.
	HostProcess *HostProcess `json:"hostProcess,omitempty"`
	// HostPaths are directories of the host that containers may mount, with all in them, although they are guarded. Only admission asks for them, and no bundle has them.
	HostPaths []string `json:"hostPaths,omitempty"`
	// Account and Program make it a process of the node, and no container: the SID that it runs as, and the full path of its program.
	Account string `json:"account,omitempty"`
	Program string `json:"program,omitempty"`
	// Owner answers for a permission that ends, Reason is why there is one. They are for people, and no node gets them.
	Owner  string `json:"-"`
	Reason string `json:"-"`
	// ExpiresAt is when the permission ends, by the clock of the end that asks; zero means never.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	Permission
}

// HostProcess is what a subject permits HostProcess containers.
type HostProcess struct {
	// RunAsUserNames are the Windows accounts that they may declare, in any case. An empty list permits any, and none at all.
	RunAsUserNames []string `json:"runAsUserNames,omitempty"`
}

// ReachesHost says whether the subject permits HostProcess containers or host paths.
func (s *Subject) ReachesHost() bool { return s.HostProcess != nil || len(s.HostPaths) > 0 }

// End is ExpiresAt as it counts: parts of a second are cut off, so that the end is never late.
func (s *Subject) End() time.Time { return s.ExpiresAt.Truncate(time.Second) }

// HasEnded says whether the permission has ended.
func (s *Subject) HasEnded(now time.Time) bool {
	return !s.ExpiresAt.IsZero() && !now.Before(s.End())
}

// outlasts says whether a permission ends later than another one.
func (s *Subject) outlasts(o *Subject) bool {
	return !o.ExpiresAt.IsZero() && (s.ExpiresAt.IsZero() || s.ExpiresAt.After(o.ExpiresAt))
}

// subjectFields are those that a subject asks of a container, in the order in which they are compared.
var subjectFields = []Field{FieldNamespace, FieldServiceAccount, FieldContainer, FieldImage, FieldHostProcess, FieldRunAsUserName, FieldHostPath}

// Miss is the subject that comes nearest to a container which is none: it fits in more fields than others do, and of those that fit in as many it
// is the first.
type Miss struct {
	Subject *Subject
	// Field is the first that does not fit.
	Field Field
}

// nearer says whether m comes nearer than o does. No miss at all is the farthest.
func (m Miss) nearer(o Miss) bool {
	return m.Subject != nil && (o.Subject == nil || slices.Index(subjectFields, m.Field) > slices.Index(subjectFields, o.Field))
}

// Nearer is the nearer of two misses, the first of two that are as near.
func (m Miss) Nearer(o Miss) Miss {
	if o.nearer(m) {
		return o
	}
	return m
}

// Want are the values of the field that would have fitted, as they are written in the subject.
func (m Miss) Want() []string {
	switch m.Field {
	case FieldNamespace:
		return []string{m.Subject.Namespace}
	case FieldServiceAccount:
		return m.Subject.ServiceAccounts
	case FieldContainer:
		return m.Subject.Containers
	case FieldImage:
		return m.Subject.Images
	case FieldRunAsUserName:
		return m.Subject.HostProcess.RunAsUserNames
	case FieldHostPath:
		return m.Subject.HostPaths
	}
	return nil
}

// Subjects are those of one policy, ready to be matched.
type Subjects struct {
	first       *Subject
	byNamespace map[string][]matcher
	weights     map[string]int
}

// matcher is a subject with its pattern.
type matcher struct {
	*Subject
	Pattern
}

// IsProcess says whether the subject is a process of the node, and so no container of a pod.
func (s *Subject) IsProcess() bool { return s.Account != "" || s.Program != "" }

// CheckProcess says what is wrong with a process of the node. Of containers it says nothing.
func (s *Subject) CheckProcess() error {
	exe, err := ParseExe(s.Program)
	switch {
	case !s.IsProcess():
		return nil
	case s.Namespace != "" || s.ServiceAccounts != nil || s.Containers != nil || s.Images != nil || s.ReachesHost():
		return errors.New("a process of the node is in no pod: leave namespace, serviceAccounts, containers, images, hostProcess and hostPaths out")
	case s.RequireToken:
		return errors.New("no process of the node has a token: with requireToken, its own or that of the whole policy, nothing is permitted to it on nodes")
	case checkUser(s.Account) != nil || !strings.HasPrefix(s.Account, "S-"):
		return fmt.Errorf("account %q of a process: want a SID (S-1-5-18)", s.Account)
	case strings.HasPrefix(s.Account, "S-1-5-93-"):
		return fmt.Errorf("account %q of a process: nothing but containers runs as it: name a namespace", s.Account)
	case strings.HasPrefix(s.Account, "S-1-1-"), strings.HasPrefix(s.Account, "S-1-5-32-"):
		return fmt.Errorf("account %q of a process: it is a group, and no process runs as one", s.Account)
	case strings.Contains(s.Program+`\`, `.\`), strings.Contains(s.Program+`\`, ` \`):
		return fmt.Errorf("program %q of a process: no name ends in a dot or a space, for Windows", s.Program)
	case err != nil || isExeDir(exe) || separator(exe) == "/":
		return fmt.Errorf(`program %q of a process: want the full path of one program (C:\dir\driver.exe); a directory could hold anybody's`, s.Program)
	}
	return nil
}

// Pattern is what the subject asks of a caller of a pipe. An image that SpellImage does not take means no image, and an invalid process means no caller.
func (s *Subject) Pattern() Pattern {
	if s.IsProcess() {
		exe, _ := ParseExe(s.Program)
		if s.CheckProcess() != nil {
			return Pattern{Images: []string{""}}
		}
		return Pattern{User: s.Account, Exe: exe, OnNode: true, Least: caller.LevelProcess}
	}
	p := Pattern{Namespace: s.Namespace, Accounts: s.ServiceAccounts, Containers: s.Containers, Token: s.RequireToken, Least: caller.LevelPod}
	for _, text := range s.Images {
		patterns, err := SpellImage(text)
		if err != nil {
			patterns = []string{""}
		}
		p.Images = append(p.Images, patterns...)
	}
	return p
}

// NewSubjects makes subjects ready for Match. Processes of the node are no containers, so they are left out.
func NewSubjects(list []Subject) *Subjects {
	s := &Subjects{byNamespace: map[string][]matcher{}, weights: map[string]int{}}
	for i := range list {
		if list[i].IsProcess() {
			continue
		}
		s.first = cmp.Or(s.first, &list[i])
		m := matcher{&list[i], list[i].Pattern()}
		m.Token = false // a pod shows none
		s.byNamespace[m.Subject.Namespace] = append(s.byNamespace[m.Subject.Namespace], m)
		s.weights[m.Subject.Namespace] += 1 + len(m.Accounts) + len(m.Pattern.Containers) + len(m.Pattern.Images) + len(m.HostPaths)
	}
	return s
}

// Weight is how many comparisons Match makes at most for a container of a namespace, and one more.
func (s *Subjects) Weight(namespace string) int { return 1 + s.weights[namespace] }

// Question is what is asked of a subject: of the first field in which a container differs from it, empty if in none, it makes the first that counts.
type Question func(s *Subject, c *caller.Container, field Field) Field

// OfPipe asks whether a container may use a pipe.
func OfPipe(_ *Subject, _ *caller.Container, field Field) Field { return field }

// OfAccount asks whether some container of the pod's account may, without regard to the container and its image.
func OfAccount(_ *Subject, _ *caller.Container, field Field) Field {
	if field == FieldContainer || field == FieldImage {
		return ""
	}
	return field
}

// Match returns the subject that a container is and whose permission lasts longest. If it is none, that is nil, with the nearest one.
// ended is the last of those that it was. A caller without a namespace and a service account matches no subject; another unknown field matches only a subject that does not restrict it.
func (s *Subjects) Match(c *caller.Caller, asks Question, now time.Time) (is, ended *Subject, miss Miss) {
	namespace, account := c.Pod.Namespace, c.Pod.ServiceAccount
	if namespace == "" || account == "" || c.Assurance != caller.AssurancePod && c.Assurance != caller.AssuranceDeclared {
		return nil, nil, Miss{}
	}
	list := s.byNamespace[namespace]
	if len(list) == 0 && s.first != nil {
		return nil, nil, Miss{s.first, FieldNamespace}
	}
	declared := known{level: caller.LevelPod}
	declared.foldPod(c)
	for i := range list {
		m := &list[i]
		field := asks(m.Subject, &c.Container, m.differs(&declared))
		switch {
		case field != "":
			miss = miss.Nearer(Miss{m.Subject, field})
		case m.HasEnded(now):
			if ended == nil || m.outlasts(ended) {
				ended = m.Subject
			}
		case is == nil || m.outlasts(is):
			is = m.Subject
		}
	}
	if is != nil {
		miss = Miss{}
	}
	return is, ended, miss
}

// Longest is the permission that lasts longest of two, the first of equal ones. Either may be nil.
func Longest(a, b *Subject) *Subject {
	if a == nil || b != nil && b.outlasts(a) {
		return cmp.Or(b, a)
	}
	return a
}
