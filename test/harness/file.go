package harness

import (
	"errors"
	"os"
	"testing"
)

// Replace writes a file in one step, as a kubelet does: the new content is complete before it has the name.
func Replace(t testing.TB, file, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(file+".next", []byte(text), 0o600), os.Rename(file+".next", file)); err != nil {
		t.Fatal(err)
	}
}
