package handler

import "github.com/pipeguard/pipeguard/internal/proxy/safepath"

// paths turns the paths of requests into paths that a host may see.
type paths struct{ roots *safepath.Roots }

// within accepts a path that is a working directory or lies in one.
func (p paths) within(path string) (safepath.Path, error) { return p.roots.Check(path) }

// below accepts a path in a working directory that is not that directory itself: it is the node's, and a request that
// would remove, replace or mount over it would take away every pod's volumes at once.
func (p paths) below(path string) (safepath.Path, error) {
	checked, err := p.roots.Check(path)
	if err != nil {
		return safepath.Path{}, err
	}
	if len(checked.Rel()) == 0 {
		return safepath.Path{}, invalid("path: %s is a working directory, and only what lies in it may be changed", checked)
	}
	return checked, nil
}
