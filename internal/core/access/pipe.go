package access

import (
	"slices"
	"strings"
)

// FullName is what the full name of a pipe begins with.
const FullName = `\\.\pipe\`

// Pipe is a pipe of a node: a version of a group of the node API, or one that is forwarded, whose group is its full name and which has no version.
type Pipe struct{ Group, Version string }

// Name is the name that PipePolicies use, in lower case.
func (p Pipe) Name() string {
	if full, ok := strings.CutPrefix(p.Group, FullName); ok {
		return strings.ToLower(full)
	}
	return PipePrefix + p.Group + "-" + p.Version
}

// Guards says whether the policy guards a pipe, as at admission.
func (p *Policy) Guards(pipe Pipe) bool { return slices.ContainsFunc(p.Pipes, pipe.isGuardedBy) }

// Opens says whether what the policy permits holds for a pipe too. csi-proxy* guards system-v1, and permits nothing there.
func (p *Policy) Opens(pipe Pipe) bool { return slices.ContainsFunc(p.Pipes, pipe.isOpenedBy) }

// Spells says whether a pattern that opens the pipe spells out its group: csi-proxy-disk-v1 and csi-proxy-disk-* do, csi-proxy-d* and csi-proxy-disk* do not.
func (p *Policy) Spells(pipe Pipe) bool {
	return slices.ContainsFunc(p.Pipes, func(pattern string) bool {
		return pipe.isOpenedBy(pattern) && strings.HasPrefix(pattern, PipePrefix+pipe.Group+"-")
	})
}

func (p Pipe) isGuardedBy(pattern string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(p.Name(), prefix)
	}
	return p.Name() == pattern
}

func (p Pipe) isOpenedBy(pattern string) bool {
	return p.isGuardedBy(pattern) && (!MustBeSpelled(p.Group) || strings.HasPrefix(pattern, PipePrefix+p.Group))
}
