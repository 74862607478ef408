//go:build !windows

package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build compiles a command of this checkout (such as "./cmd/webhook") into dir and returns its path. With race it is
// built with the race detector, which needs a C compiler.
func Build(ctx context.Context, dir, pkg string, race bool) (string, error) {
	exe := filepath.Join(dir, filepath.Base(pkg))
	args, cgo := []string{"build", "-o", exe}, "CGO_ENABLED=0"
	if race {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...) // #nosec G204 -- a package of this module
	cmd.Dir = Root()
	cmd.Env = append(cmd.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return exe, nil
}
