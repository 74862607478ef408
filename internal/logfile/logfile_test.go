package logfile

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestAFullFileIsRenamedAndANewOneBegun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.log")
	if err := os.WriteFile(path, []byte("from before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Open(path, Options{MaxSizeMB: 1})
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("x"), 1<<19)
	for range 3 {
		if _, err := file.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(filepath.Dir(path), "proxy*.log"))
	if err != nil || len(all) != 2 {
		t.Errorf("files %q, %v", all, err)
	}
	total := 0
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	if want := 3<<19 + len("from before\n"); total != want {
		t.Errorf("%d bytes are left of %d", total, want)
	}
}

func TestAFileThatCannotBeOpenedIsAnErrorAtOnce(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none", "proxy.log")} {
		if _, err := Open(path, Options{}); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
}

func TestNoBoundIsANegativeSize(t *testing.T) {
	if o := (Options{MaxSizeMB: -1}).complete(); o.MaxSizeMB < 1<<20 {
		t.Errorf("bounded at %d MiB", o.MaxSizeMB)
	}
	if o := (Options{}).complete(); o != (Options{MaxSizeMB: 100, MaxBackups: 5, MaxAgeDays: 30}) {
		t.Errorf("defaults %+v", o)
	}
}
