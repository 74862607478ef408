package handler

import "github.com/pipeguard/pipeguard/internal/core/safepath"

// paths turns the paths of requests into paths that a host may see.
type paths struct{ roots *safepath.Roots }

// within accepts a path that is a working directory or lies in one.
func (p paths) within(path string) (safepath.Path, error) { return p.roots.Check(path) }

// ofVolume accepts a path in a working directory that can belong to a single volume. A request that would remove, replace or
// mount over anything above would take away the volumes of every pod at once.
func (p paths) ofVolume(path string) (safepath.Path, error) { return p.roots.CheckVolume(path) }
