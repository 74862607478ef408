package admission

import (
	"github.com/pipeguard/pipeguard/internal/pipepath"
)

// Requirement says what a container must have to mount a guarded pipe.
type Requirement string

// Requirements, from the widest to the narrowest.
const (
	// PrivilegedOrAllowedNamespace lets privileged containers pass anywhere. On Windows privileged has no effect, and
	// whoever writes a pod can set it: an admission that rests on it alone carries a warning.
	PrivilegedOrAllowedNamespace  Requirement = "PrivilegedOrAllowedNamespace"
	AllowedNamespace              Requirement = "AllowedNamespace"
	PrivilegedAndAllowedNamespace Requirement = "PrivilegedAndAllowedNamespace"
)

// HostProcess says what follows from a HostProcess container, which reaches the pipes of its node without a mount.
type HostProcess string

// What can follow from a HostProcess container.
const (
	HostProcessIgnore HostProcess = "Ignore"
	HostProcessAudit  HostProcess = "Audit"
	HostProcessWarn   HostProcess = "Warn"
	HostProcessDeny   HostProcess = "Deny"
)

// Parameters adjust the default policy. Policies read them under data.pipeguard.parameters.
type Parameters struct {
	// GuardedPipes are names of pipes, or prefixes that end in "*", in any case.
	GuardedPipes []string
	Requirement  Requirement
	// AllowedNamespaces are the namespaces whose pods may mount guarded pipes. Empty by default.
	AllowedNamespaces map[string]Subjects
	HostProcess       HostProcess
}

// Subjects are those in an allowed namespace whom the permission is for.
type Subjects struct {
	// ServiceAccounts of the pods. None means any, so anyone who may create pods in the namespace has the permission.
	ServiceAccounts []string
}

// DefaultParameters guards CSI Proxy's pipes and allows no namespace.
func DefaultParameters() Parameters {
	return Parameters{
		GuardedPipes:      pipepath.DefaultPatterns(),
		Requirement:       PrivilegedOrAllowedNamespace,
		AllowedNamespaces: map[string]Subjects{},
		HostProcess:       HostProcessAudit,
	}
}

// Guard compiles the guarded pipes.
func (p Parameters) Guard() (*pipepath.Guard, error) { return pipepath.NewGuard(p.GuardedPipes...) }

// Data is the document that policies see as data, with the parameters at pipeguard.parameters.
func (p Parameters) Data() map[string]any {
	namespaces := make(map[string]any, len(p.AllowedNamespaces))
	for name, s := range p.AllowedNamespaces {
		namespaces[name] = map[string]any{"serviceAccounts": anys(s.ServiceAccounts)}
	}
	return map[string]any{"pipeguard": map[string]any{"parameters": map[string]any{
		"guardedPipes":      anys(p.GuardedPipes),
		"requirement":       string(p.Requirement),
		"allowedNamespaces": namespaces,
		"hostProcess":       string(p.HostProcess),
	}}}
}

func anys(s []string) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}
