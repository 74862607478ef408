package clustercmd

import (
	"context"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// modesReport are the parameters that say how strict the guard is.
type modesReport struct {
	Requirement string `json:"requirement"`
	HostProcess string `json:"hostProcess"`
	EqualPower  string `json:"equalPower"`
	HostPaths   string `json:"hostPaths"`
}

// modes checks the parameters by which the webhook decides.
func (s *survey) modes(ctx context.Context) check {
	c := newCheck("modes")
	c.Text = "the parameters could not be read"
	d, err := s.deployment(ctx, s.release)
	if err != nil {
		c.unknown("parameters", err)
		return c
	}
	p, err := s.parameters(ctx, s.release, d)
	if err != nil {
		c.unknown("parameters", err)
		return c
	}
	m := &modesReport{string(p.Requirement), string(p.HostProcess), string(p.EqualPower), string(p.HostPaths)}
	s.report.Modes = m
	c.Text = fmt.Sprintf("requirement %s, hostProcess %s, equalPower %s, hostPaths %s", m.Requirement, m.HostProcess, m.EqualPower, m.HostPaths)
	if p.Requirement == admission.PrivilegedOrAllowedNamespace {
		c.no(settingRequirement, "%s: any container gets a pipe that no PipePolicy governs by saying that it is privileged, which means nothing on Windows", p.Requirement)
	}
	for _, mode := range []struct {
		setting string
		action  admission.Action
		what    string
	}{
		{settingHostProcess, p.HostProcess, "HostProcess containers, which need no mount,"},
		{settingEqualPower, p.EqualPower, "paths with as much power as a guarded pipe"},
		{settingHostPaths, p.HostPaths, "guarded host paths"},
	} {
		if mode.action != admission.ActionDeny {
			c.no(mode.setting, "%s: %s are not refused", mode.action, mode.what)
		}
	}
	for _, name := range sortedNames(p.PipePolicies) {
		if own := p.PipePolicies[name]; len(own.Pipes) > 0 && own.Action != admission.ActionDeny {
			c.no("pipePolicies."+name, "admission.action is %s: nothing is refused", own.Action)
		}
	}
	return c
}
