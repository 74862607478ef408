package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pipeguard/pipeguard/internal/atomicfile"
)

// holds checks that a directory has one file, and what it holds.
func holds(t *testing.T, file, want string) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("the file holds %q (%v), want %q", got, err, want)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v (%v), want the file alone", entries, err)
	}
}

func TestReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"old", "new"} {
		if err := atomicfile.Replace(file, 0o640, func(w io.Writer) error {
			_, err := io.WriteString(w, content)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		holds(t, file, content)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o640 {
		t.Errorf("the file is %v (%v), want mode 0640", info.Mode(), err)
	}
	failure := errors.New("no more")
	if err := atomicfile.Replace(file, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, failure)
	}); !errors.Is(err, failure) {
		t.Errorf("Replace() = %v, want the failure to write", err)
	}
	holds(t, file, "new")
}

func TestATemporaryFileIsRemovedWhereItCannotTakeThePlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.MkdirAll(filepath.Join(dir, "content"), 0o700); err != nil {
		t.Fatal(err)
	}
	temp, err := atomicfile.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Commit(temp, dir, nil); err == nil {
		t.Error("a file took the place of a directory that is not empty")
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("there are %v (%v), want the directory alone", entries, err)
	}
}

func TestCloseRemovesAFileThatIsNotWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, failure := range []error{nil, errors.New("no more")} {
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := atomicfile.Close(f, failure); !errors.Is(err, failure) {
			t.Errorf("Close() = %v, want %v", err, failure)
		}
		if _, err := os.Stat(file); (err == nil) != (failure == nil) {
			t.Errorf("after %v: %v", failure, err)
		}
	}
}
