package pipepath

import "errors"

// Guard knows which pipes are guarded. It does not change after [NewGuard], so that any number of
// goroutines may use it.
type Guard struct {
	patterns []pattern
}

// DefaultPatterns guards every pipe of CSI Proxy. There is no dash before the star: KEP-1122 gives the
// prefix as csi-proxy, and other versions of the program may continue it in another way.
func DefaultPatterns() []string { return []string{"csi-proxy*"} }

// NewGuard returns a Guard of pipe names, each exact or a beginning followed by *; case does not matter.
// The error names every pattern that is neither, and there must be one pattern at least.
func NewGuard(patterns ...string) (*Guard, error) {
	if len(patterns) == 0 {
		return nil, errors.New("no pipe patterns: nothing would be guarded")
	}
	parsed, err := parseAll(patterns, parsePattern)
	if err != nil {
		return nil, err
	}
	return &Guard{patterns: parsed}, nil
}

// Verdict says whether a mount is guarded, and why.
type Verdict struct {
	Name
	Match        bool   // the path names a guarded pipe, or might
	NeverAllowed bool   // it names no single pipe that a policy could allow; Match is set then
	Pattern      string // the pattern that covers the pipe; empty unless Kind is KindPipe and Match is set
	SubPath      bool   // it took the subPath to match: Name is of volume path and subPath joined
}

// Judge says whether a container that mounts hostPath gets hold of a guarded pipe.
func (g *Guard) Judge(hostPath string) Verdict {
	v := Verdict{Name: Canonical(hostPath)}
	v.NeverAllowed = v.Kind.NeverAllowed()
	v.Match = v.NeverAllowed
	if v.Kind != KindPipe {
		return v
	}
	first, match := coversAny(g.patterns, v.Pipe)
	v.Match, v.Pattern = match, first.written
	return v
}

// JudgeMount judges the path of a volume, and the path joined with the subPath of a mount.
// The volume's own verdict stands if it matches (the runtime may touch the whole of it), or if neither does.
func (g *Guard) JudgeMount(hostPath, subPath string) Verdict {
	volume := g.Judge(hostPath)
	if volume.Match || subPath == "" {
		return volume
	}
	joined := g.Judge(joinSubPath(hostPath, subPath))
	if !joined.Match {
		return volume
	}
	joined.SubPath = true
	return joined
}

// joinSubPath puts one separator between the two unless hostPath brings its own: "/" and "var" are "/var",
// which must not become the host var. A separator at the beginning of subPath stays, so that "\" and
// "\.\pipe\x" are seen for what they may become.
func joinSubPath(hostPath, subPath string) string {
	if hostPath == "" || isSeparator(hostPath[len(hostPath)-1]) {
		return hostPath + subPath
	}
	return hostPath + `\` + subPath
}
