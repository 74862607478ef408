package harness

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// Root is the directory of the module that the current directory is in.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
	}
	return dir
}

// Build compiles commands of this checkout into dir, and returns the path of the last. args are flags of go build and
// then packages, such as "./cmd/webhook". Without a race detector no C compiler is needed.
func Build(ctx context.Context, dir string, args ...string) (exe string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	// Without debug symbols linking is quicker.
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-ldflags=-s -w", "-o", dir + string(os.PathSeparator)}, args...)...) // #nosec G204 -- packages of this module
	cmd.Dir = Root()
	cgo := "CGO_ENABLED=0"
	if slices.Contains(args, "-race") {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(cmd.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %q: %w\n%s", args, err, out)
	}
	exe = filepath.Join(dir, filepath.Base(args[len(args)-1]))
	if runtime.GOOS == "windows" {
		exe += ".exe"
	}
	return exe, nil
}

// EnvTools names the directory with the programs that test/tools/build makes.
const EnvTools = "PIPEGUARD_TOOLS"

// Tools is the directory with the programs that test/tools/build makes: dist/tools of the checkout, unless the
// environment names another.
func Tools() string {
	return cmp.Or(os.Getenv(EnvTools), filepath.Join(Root(), "dist", "tools"))
}
