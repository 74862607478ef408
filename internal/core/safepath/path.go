package safepath

import (
	"slices"
	"strings"
)

// Path is an absolute Windows path within one of the working directories. Only [Roots.Check] makes one;
// the zero Path names nothing.
type Path struct {
	root string   // as configured, without a separator at its end
	rel  []string // as the caller wrote them
}

// String returns the path: the working directory as it was configured, whatever its spelling in the request,
// and the segments below it as the caller wrote them.
func (p Path) String() string {
	if len(p.rel) == 0 {
		return p.root
	}
	size := len(p.root)
	for _, s := range p.rel {
		size += 1 + len(s)
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(p.root)
	for _, s := range p.rel {
		b.WriteByte('\\')
		b.WriteString(s)
	}
	return b.String()
}

// Root returns the working directory that the path lies in.
func (p Path) Root() string { return p.root }

// Rel returns the segments below the working directory; none means the directory itself.
func (p Path) Rel() []string { return slices.Clone(p.rel) }

// Base returns the last segment, which is the working directory's own if the path is that directory.
func (p Path) Base() string {
	if len(p.rel) > 0 {
		return p.rel[len(p.rel)-1]
	}
	return p.root[strings.LastIndexByte(p.root, '\\')+1:]
}

// IsZero reports whether p is the zero Path.
func (p Path) IsZero() bool { return p.root == "" }

// Fold returns a key that is the same for all spellings of the path that NTFS takes for one, in the scripts
// where that is certain. It is for comparing and for maps, not for opening.
func (p Path) Fold() string { return fold(p.String()) }
