package admission

import (
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// OtherMode is a subject of a PipePolicy of the API that a container fits but for its mode, which the policy does not permit.
type OtherMode struct {
	Policy, Subject string
	// HostProcess is true for a HostProcess container of a subject without hostProcess, false for one that mounts a guarded pipe, of a policy without pipes.
	HostProcess bool
}

// otherModes fills in the other modes of details. What that may take is bounded, and what is beyond it is not found.
func (s *Scope) otherModes(in *Input, details []Detail, now time.Time) {
	d, left := &describer{in: in}, maxMatches
	pod := caller.Pod{Namespace: in.Namespace, ServiceAccount: in.ServiceAccount}
	for i := range details {
		field := details[i].Finding.Field
		if c := d.container(field); c != nil && c.HostProcess && len(c.Access.Subjects) == 0 {
			who := caller.Declared(pod, caller.Container{Name: c.Name, Image: c.Image, HostProcess: true, RunAsUserName: c.RunAsUserName})
			details[i].OtherModes = s.modesOf(who, now, &left)
		} else if m := d.mount(field); m != nil && m.Guarded && !m.HostProcess && len(m.Access.Subjects) == 0 {
			details[i].OtherModes = s.modesOf(caller.Declared(pod, caller.Container{Name: m.Container, Image: m.Image}), now, &left)
		}
	}
}

func (s *Scope) modesOf(c caller.Caller, now time.Time, left *int) (out []OtherMode) {
	isHost := c.Container.HostProcess
	for _, name := range s.objects {
		if hasPipes := len(s.policies[name].Pipes) > 0; hasPipes != isHost {
			continue
		}
		subjects := s.subjects[name]
		if *left -= subjects.Weight(c.Pod.Namespace); *left < 0 {
			break
		}
		if is, _, _ := subjects.Match(&c, access.OfPipe, now); is != nil && (is.HostProcess == nil) == isHost {
			out = append(out, OtherMode{name, is.Name, isHost})
		}
	}
	return out
}
