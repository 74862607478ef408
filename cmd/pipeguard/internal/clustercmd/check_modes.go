package clustercmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/internal/preset"
)

// modesReport are the parameters that say how strict the guard is.
type modesReport struct {
	Action      string `json:"action"`
	Requirement string `json:"requirement"`
	HostProcess string `json:"hostProcess"`
	EqualPower  string `json:"equalPower"`
	HostPaths   string `json:"hostPaths"`
}

// presetReport is the preset that holds, or the nearest.
type presetReport struct {
	Name    string          `json:"name"`
	Differs []presetDiffers `json:"differs"`

	preset preset.Preset
	live   preset.Settings
}

// presetDiffers is a setting that is not the preset's.
type presetDiffers struct {
	Setting string `json:"setting"`
	Preset  string `json:"preset"`
	// Now is the setting in force; empty if it is not known.
	Now string `json:"now"`
}

// modes checks the parameters by which the webhook decides. It has the floor's mode from the check before.
func (s *survey) modes(ctx context.Context) check {
	c := newCheck("modes")
	c.Text = "the parameters could not be read"
	d, err := s.deployment(ctx, s.release)
	if err != nil {
		c.unknown("parameters", err)
		return c
	}
	p, named, err := s.parametersAndPreset(ctx, s.release, d)
	if err != nil {
		c.unknown("parameters", err)
		return c
	}
	m := &modesReport{string(p.Action), string(p.Requirement), string(p.HostProcess), string(p.EqualPower), string(p.HostPaths)}
	s.report.Modes = m
	says := s.preset(named, p)
	c.Text = fmt.Sprintf("preset %s: action %s, requirement %s, hostProcess %s, equalPower %s, hostPaths %s",
		says, m.Action, m.Requirement, m.HostProcess, m.EqualPower, m.HostPaths)
	if p.Action != admission.ActionDeny {
		c.no(settingAction, "%s: mounts of guarded pipes that no PipePolicy governs are not refused", p.Action)
	}
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

// preset finds out which preset holds, and returns it in words: the one that the release names, or the nearest.
func (s *survey) preset(named string, p admission.Parameters) string {
	failurePolicy := s.release.pipeFailurePolicy()
	live := preset.Live(p, failurePolicy, s.floorMode.Mode)
	found, differences := preset.Nearest(live)
	if own, ok := preset.Find(named); ok {
		found, differences = own, own.Differences(live)
	}
	if s.floorMode.replaces() && failurePolicy == "" { // there is nothing that could have one
		differences = slices.DeleteFunc(differences, func(d preset.Difference) bool { return d.Path == "webhook.failurePolicy" })
	}
	out := &presetReport{Name: found.Name, Differs: []presetDiffers{}, preset: found, live: live}
	for _, d := range differences {
		out.Differs = append(out.Differs, presetDiffers{d.Path, d.Want, d.Got})
	}
	s.report.Preset = out
	return preset.Say(found.Name, differences)
}

// pipeFailurePolicy is the failure policy of the webhook for pods that could reach a pipe; empty if there is none.
func (r *release) pipeFailurePolicy() string {
	for _, c := range r.configurations {
		for _, w := range c.Webhooks {
			if w.Name == entries.Pods && w.FailurePolicy != nil {
				return string(*w.FailurePolicy)
			}
		}
	}
	return ""
}
