package logfile

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
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
	file, err := Open(filepath.Join(t.TempDir(), "proxy.log"), Options{MaxSizeMB: -1})
	if err != nil {
		t.Fatal(err)
	}
	if file.most != 0 {
		t.Errorf("bounded at %d bytes", file.most)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestDefaults(t *testing.T) {
	file, err := Open(filepath.Join(t.TempDir(), "proxy.log"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if file.options != (Options{MaxSizeMB: 100, MaxBackups: 5, MaxAgeDays: 30}) || file.most != 100<<20 {
		t.Errorf("defaults %+v", file.options)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestRenamedFilesThatAreTooManyOrTooOldAreRemovedAndNoOthers(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	f := &File{path: filepath.Join(dir, "proxy.log"), options: Options{MaxBackups: 2, MaxAgeDays: 30}}
	names := map[string]bool{ // whether it stays
		filepath.Base(f.backup(now.Add(-time.Hour))):           true,
		filepath.Base(f.backup(now.Add(-2 * time.Hour))):       true,
		filepath.Base(f.backup(now.Add(-3 * time.Hour))):       false,
		filepath.Base(f.backup(now.Add(-40 * 24 * time.Hour))): false,
		"proxy.log":                            true,
		"proxy-notes.log":                      true,
		"proxy-2020-01-01T00-00-00.000.txt":    true,
		"proxyx-2020-01-01T00-00-00.000.log":   true,
		"proxy-2020-01-01T00-00-99.000.log":    true,
		"proxy-2020-01-01T00-00-00.000.log.gz": true,
	}
	for name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.prune(now)
	for name, stays := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != stays {
			t.Errorf("%s: %v, stays: %v", name, err, stays)
		}
	}
}
