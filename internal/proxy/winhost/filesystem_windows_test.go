package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// disk is a Filesystem on a new working directory.
type disk struct {
	*Filesystem
	t    *testing.T
	root string
}

func newDisk(t *testing.T) disk {
	t.Helper()
	// Not t.TempDir: package testing cannot remove full directories under Wine.
	root, err := os.MkdirTemp("", "winhost")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		parent := tree{name: root, open: func() (dir, error) { return openWorking(filepath.Dir(root)) }}
		if err := parent.remove(context.Background(), []string{filepath.Base(root)}, true); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return diskAt(t, root)
}

func reachesNothing(context.Context, string) (bool, error) { return false, nil }

func diskAt(t *testing.T, root string) disk {
	t.Helper()
	roots, err := safepath.NewRoots(root)
	if err != nil {
		t.Fatal(err)
	}
	return disk{&Filesystem{places{roots, openWorking}, reachesNothing, mountManager{}}, t, root}
}

// path is one below the working directory.
func (d disk) path(rel string) safepath.Path {
	d.t.Helper()
	text := d.root
	if rel != "" {
		text += `\` + rel
	}
	path, err := d.roots.Check(text)
	if err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d disk) mkdir(rel string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Join(d.root, rel), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

func (d disk) write(rel string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.root, rel), []byte("kept"), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// has asks the disk by another way than the one under test.
func (d disk) has(rel string) bool {
	d.t.Helper()
	_, err := os.Lstat(filepath.Join(d.root, rel))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return err == nil
}

func TestMkdirIsDoneOnTheDisk(t *testing.T) {
	d, ctx := newDisk(t), context.Background()
	for range 2 { // the second time it is there
		if err := d.Mkdir(ctx, d.path(`plugins\x\Stage ä`)); err != nil {
			t.Fatal(err)
		}
	}
	if !d.has(`plugins\x\Stage ä`) {
		t.Error("it is not there")
	}
	if err := d.Mkdir(ctx, d.path("")); err != nil {
		t.Errorf("the working directory itself: %v", err)
	}
	if err := d.Mkdir(ctx, d.path(`PLUGINS\X\other`)); err != nil || !d.has(`plugins\x\other`) {
		t.Errorf("in another case: %v", err)
	}
	d.write("file")
	if err := d.Mkdir(ctx, d.path("file")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if err := d.Mkdir(ctx, d.path(`file\x`)); !errors.Is(err, errNotDir) {
		t.Errorf("beneath a file: %v", err)
	}
}

func TestPathExistsIsTheDisksAnswer(t *testing.T) {
	d, ctx := newDisk(t), context.Background()
	d.mkdir(`a\b`)
	d.write(`a\file`)
	for rel, want := range map[string]bool{
		"": true, "a": true, `A\B`: true, `a\file`: true,
		"x": false, `x\y`: false, `a\x`: false, `a\file\x`: false,
	} {
		if got, err := d.PathExists(ctx, d.path(rel)); err != nil || got != want {
			t.Errorf("%q: got %t, %v; want %t", rel, got, err, want)
		}
	}
}

func TestRmdirIsDoneOnTheDisk(t *testing.T) {
	d, ctx := newDisk(t), context.Background()
	d.mkdir(`full\sub\deep`)
	d.mkdir("empty")
	d.write(`full\file`)
	d.write(`full\sub\read-only`)
	d.write("file")
	if err := os.Chmod(filepath.Join(d.root, `full\sub\read-only`), 0o400); err != nil {
		t.Fatal(err)
	}
	refusals := []struct {
		rel   string
		force bool
		want  error
	}{
		{"full", false, windows.ERROR_DIR_NOT_EMPTY},
		{"nothing", false, fs.ErrNotExist},
		{`nothing\x`, false, fs.ErrNotExist},
		{`file\x`, true, errNotDir},
		{"", false, fs.ErrPermission},
		{"", true, fs.ErrPermission},
	}
	for _, r := range refusals {
		if err := d.Rmdir(ctx, d.path(r.rel), r.force); !errors.Is(err, r.want) {
			t.Errorf("%q, force %t: got %v, want %v", r.rel, r.force, err, r.want)
		}
	}
	if !d.has(`full\sub\read-only`) || !d.has(`full\file`) {
		t.Fatal("a refused removal removed something")
	}
	for _, rel := range []string{"empty", "file"} {
		if err := d.Rmdir(ctx, d.path(rel), false); err != nil || d.has(rel) {
			t.Errorf("%q: %v, still there: %t", rel, err, d.has(rel))
		}
	}
	for range 2 { // the second time it is gone
		if err := d.Rmdir(ctx, d.path("full"), true); err != nil || d.has("full") {
			t.Errorf("by force: %v, still there: %t", err, d.has("full"))
		}
	}
}

func TestRmdirContentsKeepsTheDirectory(t *testing.T) {
	d, ctx := newDisk(t), context.Background()
	d.mkdir(`full\sub\deep`)
	for i := range 2*batch + 1 {
		d.write(fmt.Sprintf(`full\sub\file %d`, i))
	}
	if err := d.RmdirContents(ctx, d.path("full")); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(d.root, "full")); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	d.write("file")
	for rel, want := range map[string]error{"": fs.ErrPermission, "nothing": fs.ErrNotExist, "file": errNotDir} {
		if err := d.RmdirContents(ctx, d.path(rel)); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", rel, err, want)
		}
	}
	if !d.has("file") || !d.has("full") {
		t.Error("a refusal removed something")
	}
}

func TestIsSymlinkTellsLinksFromTheRest(t *testing.T) {
	d, ctx := newDisk(t), context.Background()
	d.mkdir("dir")
	d.write("file")
	for _, rel := range []string{"", "dir", "file"} {
		if got, err := d.IsSymlink(ctx, d.path(rel)); err != nil || got {
			t.Errorf("%q: got %t, %v", rel, got, err)
		}
	}
	for _, rel := range []string{"nothing", `nothing\x`} {
		if _, err := d.IsSymlink(ctx, d.path(rel)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got %v", rel, err)
		}
	}
}

func TestForeignPathsAreRefused(t *testing.T) {
	d, ctx := newDisk(t), context.Background()
	other := newDisk(t)
	for name, path := range map[string]safepath.Path{"another disk's": other.path("x"), "nobody's": {}} {
		operations := map[string]error{
			"Mkdir": d.Mkdir(ctx, path), "Rmdir": d.Rmdir(ctx, path, true), "RmdirContents": d.RmdirContents(ctx, path),
			"CreateSymlink from": d.CreateSymlink(ctx, path, d.path("x")), "CreateSymlink at": d.CreateSymlink(ctx, d.path("x"), path),
		}
		_, operations["PathExists"] = d.PathExists(ctx, path)
		_, operations["IsSymlink"] = d.IsSymlink(ctx, path)
		for operation, err := range operations {
			if err == nil {
				t.Errorf("%s took %s path", operation, name)
			}
		}
	}
}

func TestNothingIsDoneForAnEndedContext(t *testing.T) {
	d := newDisk(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Mkdir(ctx, d.path("x")); !errors.Is(err, context.Canceled) || d.has("x") {
		t.Errorf("got %v, made: %t", err, d.has("x"))
	}
}
