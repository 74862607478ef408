package atmost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
)

func TestReadAllStopsBehindTheBound(t *testing.T) {
	for n := range 6 {
		rest := strings.NewReader(strings.Repeat("x", n) + strings.Repeat("y", 100*max(0, n-4)))
		text, err := ReadAll(rest, 4)
		size, isTooLong := errors.AsType[*SizeError](err)
		if n <= 4 && (err != nil || len(text) != n) || n > 4 && (!isTooLong || size.Most != 4 || text != nil || rest.Len() != n+100-5) {
			t.Errorf("%d bytes: %q, %v, %d not read", n, text, err, rest.Len())
		}
	}
	failure := errors.New("failed")
	if text, err := ReadAll(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(failure)), 4); text != nil || !errors.Is(err, failure) {
		t.Errorf("%q, %v", text, err)
	}
}

func TestReadFileTakesRegularFilesAlone(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("abcd"), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{file: nil, link: nil, dir: ErrNotRegular, filepath.Join(dir, "none"): fs.ErrNotExist} {
		if text, err := ReadFile(name, 4); !errors.Is(err, want) || err == nil && string(text) != "abcd" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if text, err := ReadFile(link, 3); text != nil || err == nil || err.Error() != "read "+link+": more than 3 bytes" {
		t.Errorf("%q, %v", text, err)
	}
	fsys := fstest.MapFS{"pipe": {Mode: fs.ModeNamedPipe}, "file": {Data: []byte("abcd")}}
	if _, err := ReadFS(fsys, "pipe", 4); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	if text, err := ReadFS(fsys, "file", 4); string(text) != "abcd" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestReadAndCloseCloses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("abcd"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]string{3: "", 4: "abcd"} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		other, otherErr := ReadAny(name, most)
		text, err := ReadAndClose(f, most)
		if string(other) != string(text) || fmt.Sprint(otherErr) != fmt.Sprint(err) {
			t.Errorf("at most %d bytes: ReadAny says %q, %v", most, other, otherErr)
		}
		if string(text) != want || (err == nil) != (want != "") {
			t.Errorf("%d: %q, %v", most, text, err)
		}
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%d: still open: %v", most, err)
		}
	}
}
