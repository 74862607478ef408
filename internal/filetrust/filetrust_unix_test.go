//go:build !windows

package filetrust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// place is a directory of this account with a file in it, and one that anybody can write to.
type place struct{ dir, file, open string }

func newPlace(t *testing.T) place {
	t.Helper()
	root := t.TempDir()
	p := place{dir: filepath.Join(root, "private"), open: filepath.Join(root, "open")}
	chmod(t, root, 0o755) // whatever the umask is
	p.file = filepath.Join(p.dir, "proxy.yaml")
	for _, dir := range []string{p.dir, p.open} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, p.file)
	chmod(t, p.open, 0o777)
	return p
}

func write(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// give makes a file another account's, which takes root.
func give(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	if err := os.Lchown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
}

func TestCheckRefusesWhatOthersCanChange(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, p place) (path string)
		want   string
	}{
		{"a file that its group can write", func(t *testing.T, p place) string { chmod(t, p.file, 0o660); return p.file }, "its group or others"},
		{"a file that everybody can write", func(t *testing.T, p place) string { chmod(t, p.file, 0o646); return p.file }, "its group or others"},
		{"a file of another account", func(t *testing.T, p place) string { give(t, p.file); return p.file }, "belongs to the user 12345"},
		{"a file in a directory that everybody can write to", func(t *testing.T, p place) string {
			file := filepath.Join(p.open, "proxy.yaml")
			write(t, file)
			return file
		}, "its group or others"},
		{"a file that is not there yet, where everybody can make it", func(_ *testing.T, p place) string {
			return filepath.Join(p.open, "proxy.yaml")
		}, "its group or others"},
		{"a file two directories beneath one that everybody can write to", func(t *testing.T, p place) string {
			dir := filepath.Join(p.open, "a", "b")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "f"))
			return filepath.Join(dir, "f")
		}, "its group or others"},
		{"a file in a directory of another account", func(t *testing.T, p place) string { give(t, p.dir); return p.file }, "belongs to the user 12345"},
		{"a file in another account's sticky directory", func(t *testing.T, p place) string {
			give(t, p.dir)
			chmod(t, p.dir, 0o755|os.ModeSticky)
			return p.file
		}, "belongs to the user 12345"},
		{"a link to a file that everybody can write", func(t *testing.T, p place) string {
			target := filepath.Join(filepath.Dir(p.dir), "target")
			write(t, target)
			chmod(t, target, 0o666)
			link(t, target, filepath.Join(p.dir, "link"))
			return filepath.Join(p.dir, "link")
		}, "its group or others"},
		{"a link to a file in a directory that everybody can write to", func(t *testing.T, p place) string {
			target := filepath.Join(p.open, "target")
			write(t, target)
			link(t, "../open/target", filepath.Join(p.dir, "link"))
			return filepath.Join(p.dir, "link")
		}, "its group or others"},
		{"a link of another account", func(t *testing.T, p place) string {
			link(t, p.file, filepath.Join(p.dir, "link"))
			give(t, filepath.Join(p.dir, "link"))
			return filepath.Join(p.dir, "link")
		}, "belongs to the user 12345"},
		{"a way through a link in a directory that everybody can write to", func(t *testing.T, p place) string {
			link(t, p.dir, filepath.Join(p.open, "way"))
			return filepath.Join(p.open, "way", "proxy.yaml")
		}, "its group or others"},
		{"links that lead to each other", func(t *testing.T, p place) string {
			link(t, "b", filepath.Join(p.dir, "a"))
			link(t, "a", filepath.Join(p.dir, "b"))
			return filepath.Join(p.dir, "a")
		}, "links"},
		{"a directory that everybody can write to", func(_ *testing.T, p place) string { return p.open }, "its group or others"},
		{"a sticky directory in which everybody can make files", func(t *testing.T, p place) string {
			chmod(t, p.open, 0o777|os.ModeSticky)
			return p.open
		}, "its group or others"},
		{"a directory with a file in it that everybody can write", func(t *testing.T, p place) string { chmod(t, p.file, 0o666); return p.dir }, "its group or others"},
		{"a directory with a directory in it that everybody can write to", func(t *testing.T, p place) string {
			inner := filepath.Join(p.dir, "inner")
			if err := os.Mkdir(inner, 0o755); err != nil {
				t.Fatal(err)
			}
			chmod(t, inner, 0o777)
			return p.dir
		}, "its group or others"},
		{"a directory with a link to a directory that everybody can write to", func(t *testing.T, p place) string {
			link(t, p.open, filepath.Join(p.dir, "more"))
			return p.dir
		}, "its group or others"},
		{"a way up from where another account's link leads", func(t *testing.T, p place) string {
			deep := filepath.Join(p.open, "a", "b")
			if err := os.MkdirAll(deep, 0o755); err != nil {
				t.Fatal(err)
			}
			link(t, deep, filepath.Join(p.open, "sub"))
			return filepath.Join(p.open, "sub") + "/../../private/proxy.yaml"
		}, "lead elsewhere than it reads"},
		{"a pipe, which would be waited for", func(t *testing.T, p place) string {
			if err := syscall.Mkfifo(filepath.Join(p.dir, "fifo"), 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(p.dir, "fifo")
		}, "neither a file nor"},
		{"a file beneath a file", func(_ *testing.T, p place) string { return filepath.Join(p.file, "x") }, "no directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := test.change(t, newPlace(t))
			err := Check(path)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error that says %q", err, test.want)
			}
			var fault *Fault
			if errors.As(err, &fault) && (fault.Path == "" || fault.Remedy == "") {
				t.Errorf("%+v has no place or no remedy", fault)
			}
		})
	}
}

func TestCheckTakesWhatOnlyThisAccountCanChange(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, p place) (path string)
	}{
		{"a file", func(_ *testing.T, p place) string { return p.file }},
		{"a file that others can read", func(t *testing.T, p place) string { chmod(t, p.file, 0o644); return p.file }},
		{"a file that is not there", func(_ *testing.T, p place) string { return filepath.Join(p.dir, "none") }},
		{"a file in a directory that is not there", func(_ *testing.T, p place) string { return filepath.Join(p.dir, "none", "none") }},
		{"a directory", func(_ *testing.T, p place) string { return p.dir }},
		{"this account's file in a sticky directory, as /tmp is", func(t *testing.T, p place) string {
			chmod(t, p.open, 0o777|os.ModeSticky)
			write(t, filepath.Join(p.open, "f"))
			return filepath.Join(p.open, "f")
		}},
		{"links as the kubelet makes them in a volume", func(t *testing.T, p place) string {
			if err := os.Mkdir(filepath.Join(p.dir, "..2026"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(p.dir, "..2026", "keys.pem"))
			link(t, "..2026", filepath.Join(p.dir, "..data"))
			link(t, "..data/keys.pem", filepath.Join(p.dir, "keys.pem"))
			return filepath.Join(p.dir, "keys.pem")
		}},
		{"directories with links to each other", func(t *testing.T, p place) string {
			other := filepath.Join(filepath.Dir(p.dir), "other")
			if err := os.Mkdir(other, 0o755); err != nil {
				t.Fatal(err)
			}
			link(t, "../other", filepath.Join(p.dir, "there"))
			link(t, "../private", filepath.Join(other, "back"))
			return p.dir
		}},
		{"a volume of the kubelet as a whole", func(t *testing.T, p place) string {
			if err := os.Mkdir(filepath.Join(p.dir, "..2026"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(p.dir, "..2026", "a.rego"))
			link(t, "..2026", filepath.Join(p.dir, "..data"))
			link(t, "..data/a.rego", filepath.Join(p.dir, "a.rego"))
			return p.dir
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := Check(test.change(t, newPlace(t))); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckOwnersLooksAtWhoseEverythingIsAndNotAtWhoMayWrite(t *testing.T) {
	p := newPlace(t)
	for _, path := range []string{p.file, filepath.Join(p.open, "not-there"), p.open} {
		if err := CheckOwners(path); err != nil {
			t.Error(err)
		}
	}
	link(t, p.file, filepath.Join(p.open, "link"))
	if err := CheckOwners(filepath.Join(p.open, "link")); err != nil {
		t.Errorf("a link of this account: %v", err)
	}
	for name, theirs := range map[string]string{"a link": filepath.Join(p.open, "link"), "a file": p.file, "a directory": p.dir} {
		give(t, theirs)
		if err := CheckOwners(theirs); err == nil {
			t.Errorf("%s of another account is taken", name)
		}
	}
	if err := CheckOwners(filepath.Join(p.dir, "not-there")); err == nil {
		t.Error("a file that is to be made in another account's directory is taken")
	}
}

func TestAPathIsTheOneThatTheSystemOpens(t *testing.T) {
	p := newPlace(t)
	t.Chdir(p.dir)
	for _, path := range []string{"proxy.yaml", "./proxy.yaml", "../private/proxy.yaml", "..//private/./proxy.yaml", "./.././private/proxy.yaml"} {
		got, err := full(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := os.Stat(got); err != nil || !os.SameFile(is, want) {
			t.Errorf("%s is %s: %v", path, got, err)
		}
	}
	for _, path := range []string{"a/../proxy.yaml", "../private/../private/proxy.yaml", p.dir + "/../private/proxy.yaml", "a/.."} {
		if got, err := full(path); err == nil {
			t.Errorf("%s is %s", path, got)
		}
	}
}

func TestEachReadAsksAnew(t *testing.T) {
	p := newPlace(t)
	if text, err := Read(p.file, 1); string(text) != "x" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for name, c := range map[string]struct {
		change func()
		want   string
	}{
		"a file that everybody can write by now": {func() { chmod(t, p.file, 0o666) }, "its group or others"},
		"a file that has grown":                  {func() { _ = os.WriteFile(p.file, []byte("xy"), 0o600) }, "more than 1 bytes"},
		"a file that was emptied":                {func() { _ = os.Truncate(p.file, 0) }, "is empty"},
		"a file that is gone":                    {func() { _ = os.Remove(p.file) }, "no such file"},
		"a directory":                            {func() { _ = errors.Join(os.Remove(p.file), os.Mkdir(p.file, 0o700)) }, "not a regular file"},
		"a pipe that nobody writes to":           {func() { _ = errors.Join(os.Remove(p.file), syscall.Mkfifo(p.file, 0o600)) }, "neither a file nor a directory"},
	} {
		_ = os.RemoveAll(p.file)
		write(t, p.file)
		c.change()
		if text, err := Read(p.file, 1); text != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want it to say %q", name, text, err, c.want)
		}
	}
}
