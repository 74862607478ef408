package fakehost

import (
	"io/fs"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// PlantFile puts a file at path, as another program on the node might do: by way of links and mount points too. Its parents are made.
func (h *Host) PlantFile(path safepath.Path) error {
	return h.plant(path, &node{name: path.Base(), kind: kindFile})
}

// PlantLink puts a link at path that leads to target, which may be any text: out of the working directories, to
// another machine. Its parents are made.
func (h *Host) PlantLink(path safepath.Path, target string) error {
	link := &node{name: path.Base(), kind: kindLink}
	if h.options.Roots != nil {
		if within, err := h.options.Roots.Check(target); err == nil {
			link.target = within
		}
	}
	return h.plant(path, link)
}

func (h *Host) plant(path safepath.Path, n *node) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, _, err := h.walk(path, way{follow: true, create: true, links: maxLinks})
	switch {
	case err != nil:
		return failed("plant", path, err)
	case len(path.Rel()) == 0, at.node.kind != kindDir, len(at.node.children) > 0, at.node.mounted != nil:
		return failed("plant", path, fs.ErrExist)
	}
	at.set(n)
	return nil
}

// Name returns how the last component of path is spelled on the host; names are found in any case and keep their own.
func (h *Host) Name(path safepath.Path) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, err := h.existing(path, false)
	if err != nil {
		return "", failed("stat", path, err)
	}
	return at.node.name, nil
}
