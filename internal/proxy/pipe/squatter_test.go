//go:build unix || windows

package pipe

import (
	"os"
	"os/exec"
	"testing"

	"github.com/pipeguard/pipeguard/test/harness"
)

// squat has another process listen, at what TestMain makes of where, until the test ends.
func squat(t *testing.T, where string) {
	t.Helper()
	squatter := exec.Command(os.Args[0])
	squatter.Env = append(os.Environ(), "PIPE_LISTEN="+where)
	if up := harness.Converse(t, squatter).Hear(); up != "up" {
		t.Fatalf("the other process says %q", up)
	}
}
