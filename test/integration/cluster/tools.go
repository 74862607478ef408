//go:build !windows

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// EnvTools names the directory with the programs that test/tools/build makes; without it dist/tools of the checkout is taken.
const EnvTools = "PIPEGUARD_TOOLS"

// Tools is a directory with the programs that tests run beside the product.
type Tools string

// Path returns the path of a program.
func (t Tools) Path(program string) string { return filepath.Join(string(t), program) }

// MissingError says which programs are not there.
type MissingError struct {
	Dir   string
	Names []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s lacks %s: run test/tools/build, or name another directory in %s", e.Dir, strings.Join(e.Names, ", "), EnvTools)
}

// FindTools returns the directory, or a *MissingError if one of the programs is not in it.
func FindTools(programs ...string) (Tools, error) {
	dir := os.Getenv(EnvTools)
	if dir == "" {
		dir = filepath.Join(Root(), "dist", "tools")
	}
	tools := Tools(dir)
	var missing []string
	for _, p := range programs {
		if info, err := os.Stat(tools.Path(p)); err != nil || info.IsDir() { // #nosec G703 -- whoever runs the tests names the directory
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return tools, &MissingError{Dir: dir, Names: missing}
	}
	return tools, nil
}

// Root is the directory of the module: three above this file.
func Root() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) { // built with -trimpath: go test runs in the package's directory
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
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
