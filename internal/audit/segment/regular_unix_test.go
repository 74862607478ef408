//go:build unix

package segment

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesOfALogAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(at("file"), []byte("x"), 0o600), os.Symlink(at("file"), at("link")), syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("dir"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "pipe", "dir", "none"} {
		if f, _, err := OpenRegular(at(name)); err == nil || name != "none" && !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	f, info, err := OpenRegular(at("file"))
	if err != nil || info.Size() != 1 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// A pipe that takes the place of a file after it was looked at is opened at once, and shows what it is.
	pipe, err := openNow(at("pipe"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pipe.Close(); err != nil {
		t.Fatal(err)
	}
}
