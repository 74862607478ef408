package admission

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// Requirement says what a container must have to mount a guarded pipe.
type Requirement string

// Requirements, from the widest to the narrowest.
const (
	// PrivilegedOrAllowedNamespace lets privileged containers pass anywhere. On Windows privileged has no effect, and
	// the author of a pod can set it: an admission that rests on it alone carries a warning.
	PrivilegedOrAllowedNamespace  Requirement = "PrivilegedOrAllowedNamespace"
	AllowedNamespace              Requirement = "AllowedNamespace"
	PrivilegedAndAllowedNamespace Requirement = "PrivilegedAndAllowedNamespace"
)

// Parameters adjust the default policy. Policies read them under data.pipeguard.parameters.
type Parameters struct {
	// GuardedPipes are names of pipes, or prefixes that end in "*", in any case.
	GuardedPipes []string
	Requirement  Requirement
	// Action is the consequence for an object without permission for a guarded pipe that no PipePolicy governs.
	Action Action
	// AllowedNamespaces are the namespaces whose pods may mount guarded pipes. Empty by default.
	AllowedNamespaces map[string]Subjects
	// HostProcess is the action on a HostProcess container that no PipePolicy permits. It reaches the pipes of its node without a mount.
	HostProcess Action
	// HostProcessAllowed are the service accounts, by their namespace, whose HostProcess containers are exempt.
	// Empty by default. Each has full control of the node, so everyone who may create pods there must be trusted with that.
	HostProcessAllowed map[string]Subjects
	// EqualPower is the action on a host path that gives as much power over the node as a guarded pipe.
	EqualPower Action
	// EqualPowerPipes are names of pipes, or prefixes that end in "*", that are not guarded and lead to the node all the same.
	EqualPowerPipes []string
	// EqualPowerPaths are directories of Windows nodes from which the node can be taken over, and all that lies below them;
	// of a drive's root, the root alone.
	EqualPowerPaths []string
	// HostPaths is the action on a mount of a guarded host path, or of a path beneath or above it, that no PipePolicy permits.
	HostPaths Action
	// GuardedHostPaths are directories of Windows nodes, absolute with their drive, in any case.
	GuardedHostPaths []string
	// PipePolicies are the same as those of the API, for installations without it.
	PipePolicies map[string]PipePolicy
}

// Subjects are those in an allowed namespace that have the permission.
type Subjects struct {
	// ServiceAccounts of the pods. None means any, so anyone who may create pods in the namespace has the permission.
	ServiceAccounts []string
}

// DefaultParameters guards CSI Proxy's pipes and allows no namespace.
func DefaultParameters() Parameters {
	return Parameters{
		GuardedPipes:       pipepath.DefaultPatterns(),
		Requirement:        PrivilegedOrAllowedNamespace,
		Action:             ActionDeny,
		AllowedNamespaces:  map[string]Subjects{},
		HostProcess:        ActionAudit,
		HostProcessAllowed: map[string]Subjects{},
		EqualPower:         ActionAudit,
		EqualPowerPipes:    pipepath.DefaultPowerPipes(),
		EqualPowerPaths:    pipepath.DefaultPowerPaths(),
		HostPaths:          ActionAudit,
		GuardedHostPaths:   pipepath.DefaultHostPaths(),
		PipePolicies:       map[string]PipePolicy{},
	}
}

// check reports every fault of parameters that no file was read for.
func (p Parameters) check(f *faults) {
	if _, err := pipepath.NewGuard(p.GuardedPipes...); err != nil {
		f.add("guardedPipes", "%v", err)
	}
	choice(f, "requirement", string(p.Requirement), PrivilegedOrAllowedNamespace, PrivilegedAndAllowedNamespace, AllowedNamespace)
	choice(f, "action", string(p.Action), pipeActions...)
	choice(f, "hostProcess", string(p.HostProcess), hostActions...)
	f.withAccounts("hostProcessAllowed", p.HostProcessAllowed)
	choice(f, "equalPower", string(p.EqualPower), hostActions...)
	if _, err := pipepath.NewPowers(p.EqualPowerPipes, p.EqualPowerPaths); err != nil {
		f.add("equalPowerPipes, equalPowerPaths", "%v", err)
	}
	if _, err := pipepath.NewHostPaths(p.GuardedHostPaths); err != nil {
		f.add("guardedHostPaths", "%v", err)
	}
	for _, name := range sortedKeys(p.PipePolicies) {
		p.PipePolicies[name].check(f, join("pipePolicies", name))
	}
}

// NodePolicies are the PipePolicies as nodes get them, named as in refusals at admission. The caller may change their lists of pipes and subjects.
func (p Parameters) NodePolicies() []access.Policy {
	out := make([]access.Policy, 0, len(p.PipePolicies))
	for name, own := range p.PipePolicies {
		out = append(out, access.Policy{Name: parameterPolicy(name), Pipes: slices.Clone(own.Pipes), LogOnly: own.LogOnly, Subjects: slices.Clone(own.Subjects)})
	}
	return out
}

// hostProcessParameter is the name by which messages call hostProcessAllowed.
const hostProcessParameter = "parameters/hostProcessAllowed"

// hostProcessPolicy is hostProcessAllowed as a policy: one subject for each namespace, and no pipes.
func (p Parameters) hostProcessPolicy() (out PipePolicy) {
	for _, namespace := range sortedKeys(p.HostProcessAllowed) {
		if accounts := p.HostProcessAllowed[namespace].ServiceAccounts; len(accounts) > 0 {
			out.Subjects = append(out.Subjects, access.Subject{Name: namespace, Namespace: namespace, ServiceAccounts: accounts, HostProcess: &access.HostProcess{}})
		}
	}
	return out
}

// data is what policies see of the parameters.
func (p Parameters) data() map[string]any {
	return map[string]any{
		"guardedPipes":      anys(p.GuardedPipes),
		"requirement":       string(p.Requirement),
		"action":            string(p.Action),
		"allowedNamespaces": subjectsData(p.AllowedNamespaces),
		"hostProcess":       string(p.HostProcess),
		"equalPower":        string(p.EqualPower),
		"hostPaths":         string(p.HostPaths),
	}
}

func subjectsData(byNamespace map[string]Subjects) map[string]any {
	out := make(map[string]any, len(byNamespace))
	for name, s := range byNamespace {
		out[name] = map[string]any{"serviceAccounts": anys(s.ServiceAccounts)}
	}
	return out
}

func anys(s []string) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}
