//go:build !windows

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pipeguard/pipeguard/test/harness"
)

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
	return fmt.Sprintf("%s lacks %s: run test/tools/build, or name another directory in %s", e.Dir, strings.Join(e.Names, ", "), harness.EnvTools)
}

// FindTools returns the directory, or a *MissingError if one of the programs is not in it.
func FindTools(programs ...string) (Tools, error) {
	tools := Tools(harness.Tools())
	var missing []string
	for _, p := range programs {
		if info, err := os.Stat(tools.Path(p)); err != nil || info.IsDir() {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return tools, &MissingError{Dir: string(tools), Names: missing}
	}
	return tools, nil
}
