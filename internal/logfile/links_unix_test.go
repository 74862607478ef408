//go:build !windows

package logfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestNothingIsWrittenThroughALink(t *testing.T) {
	tests := map[string]func(t *testing.T, log, victim string) (path string){
		"a link to a file": func(t *testing.T, log, victim string) string {
			if err := os.Symlink(victim, log); err != nil {
				t.Fatal(err)
			}
			return log
		},
		"a link to nothing, at which a file would be made": func(t *testing.T, log, victim string) string {
			if err := os.Symlink(victim+".new", log); err != nil {
				t.Fatal(err)
			}
			return log
		},
		"a pipe that nobody reads": func(t *testing.T, log, _ string) string {
			if err := syscall.Mkfifo(log, 0o600); err != nil {
				t.Fatal(err)
			}
			return log
		},
		"another account's directory": func(t *testing.T, log, _ string) string {
			return filepath.Join(theirs(t, filepath.Dir(log)), "proxy.log")
		},
		"another account's link to a directory": func(t *testing.T, log, victim string) string {
			link := filepath.Join(filepath.Dir(log), "logs")
			if err := os.Symlink(filepath.Dir(victim), link); err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() != 0 {
				t.Skip("only root can give a link away")
			}
			if err := os.Lchown(link, 12345, 12345); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(link, filepath.Base(victim))
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			victim := filepath.Join(t.TempDir(), "victim")
			if err := os.WriteFile(victim, []byte("as it was"), 0o600); err != nil {
				t.Fatal(err)
			}
			path := prepare(t, filepath.Join(t.TempDir(), "proxy.log"), victim)
			if file, err := Open(path, Options{}); err == nil {
				_, _ = file.Write([]byte("x"))
				t.Errorf("it was opened")
			}
			if text, err := os.ReadFile(victim); err != nil || string(text) != "as it was" {
				t.Errorf("the other file holds %q, %v", text, err)
			}
			if _, err := os.Lstat(victim + ".new"); err == nil {
				t.Error("a file was made through a link")
			}
		})
	}
}

func theirs(t *testing.T, parent string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	dir := filepath.Join(parent, "theirs")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestALinkThatIsPutInPlaceOfAFullFileIsNotFollowed(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	path := filepath.Join(t.TempDir(), "proxy.log")
	file, err := Open(path, Options{MaxSizeMB: 1})
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 600<<10))
	if _, err := file.Write(line); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(line)
	if _, there := os.Lstat(victim); there == nil {
		t.Error("the new file was made through the link")
	}
	if err != nil {
		t.Errorf("the link was renamed and a file made: %v", err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFileThatCannotBeRenamedIsBounded(t *testing.T) {
	dir := t.TempDir()
	file, err := Open(filepath.Join(dir, "proxy.log"), Options{MaxSizeMB: 1})
	if err != nil {
		t.Fatal(err)
	}
	file.path = filepath.Join(dir, strings.Repeat("n", 255-len("-.log")-len(stamp)+1)+".log") // no room for a stamp: it cannot be renamed
	if err := file.open(); err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 64<<10))
	dropped := 0
	for range 100 {
		if _, err := file.Write(line); err != nil {
			dropped++
		}
	}
	if info, err := os.Stat(file.path); err != nil || info.Size() > 2<<20+int64(len(line)) || info.Size() < 1<<20 || dropped == 0 {
		t.Errorf("%d bytes, %d lines dropped, %v", info.Size(), dropped, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}
