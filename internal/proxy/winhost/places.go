package winhost

import (
	"context"
	"errors"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// places are the working directories with the way to open them.
type places struct {
	roots *safepath.Roots
	open  func(path string) (dir, error) // follows what it is given: only working directories, drives and volumes are
}

// at finds the working directory of a path. A path that other working directories allowed is not ours to act on.
func (p places) at(ctx context.Context, path safepath.Path) (tree, []string, error) {
	if err := ctx.Err(); err != nil {
		return tree{}, nil, err
	}
	if path.IsZero() {
		return tree{}, nil, errors.New("a path that was never checked")
	}
	own, err := p.roots.Check(path.String())
	if err != nil {
		return tree{}, nil, err
	}
	return p.tree(own.Root()), own.Rel(), nil
}

func (p places) tree(root string) tree {
	return tree{name: root, open: func() (dir, error) { return p.open(root) }}
}
