//go:build linux

package winhost

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// place is a working directory with a neighbour that must never be touched:
//
//	work/           the working directory
//	work/dir/file
//	work/dir/sub/deep
//	work/file
//	work/out        a link to the neighbour
//	work/in         a link to work/dir
//	work/loop       a link to itself
//	work/gone       a link to nothing
//	work/mount-dir  a mount point
//	outside/secret  the neighbour
func place(t *testing.T) (t0 tree, base string) {
	t.Helper()
	base = t.TempDir()
	for _, dir := range []string{"work/dir/sub/deep", "outside"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"work/dir/file", "work/file", "outside/secret"} {
		if err := os.WriteFile(filepath.Join(base, file), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{
		"work/out": filepath.Join(base, "outside"), "work/in": "dir", "work/loop": "loop",
		"work/gone": filepath.Join(base, "work", "nothing"), "work/mount-dir": filepath.Join(base, "outside"),
	}
	for name, text := range links {
		if err := os.Symlink(text, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	return treeAt(filepath.Join(base, "work")), base
}

func treeAt(path string) tree {
	return tree{name: path, open: func() (dir, error) { return openUnix(path) }}
}

// list is everything under base, links shown with their text.
func list(t *testing.T, base string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(base, path)
		if entry.Type() == fs.ModeSymlink {
			text, readErr := os.Readlink(path)
			name, err = name+" -> "+strings.TrimPrefix(text, base+"/"), errors.Join(err, readErr)
		}
		found = append(found, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// operations are all that a caller can ask for, by the names under which they are asked.
var operations = map[string]func(t tree, names []string) error{
	"PathExists":    func(t tree, names []string) error { _, err := t.exists(names); return err },
	"Mkdir":         func(t tree, names []string) error { return t.mkdir(names) },
	"Rmdir":         func(t tree, names []string) error { return t.remove(context.Background(), names, false) },
	"Rmdir force":   func(t tree, names []string) error { return t.remove(context.Background(), names, true) },
	"RmdirContents": func(t tree, names []string) error { return t.empty(context.Background(), names) },
	"CreateSymlink": func(t tree, names []string) error { return t.link(names, "dir", true, same) },
	"its source":    func(t tree, names []string) error { _, err := t.isDirectory(names); return err },
	"IsSymlink":     func(t tree, names []string) error { _, err := t.redirection(names); return err },
}

func same(a, b string) bool { return a == b }

func TestNoOperationGoesThroughALink(t *testing.T) {
	for operation, act := range operations {
		for _, path := range []string{"out/secret", "out/new", "in/file", "in/new", "in/sub/deep", "dir/../out/secret", "loop/x", "gone/x", "mount-dir/secret", "mount-dir/x/y"} {
			t.Run(operation+" of "+path, func(t *testing.T) {
				tree, base := place(t)
				before := list(t, base)
				err := act(tree, split(path))
				if err == nil {
					t.Error("it was done")
				} else if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrInvalid) {
					t.Errorf("refused for another reason: %v", err)
				}
				if diff := cmp.Diff(before, list(t, base)); diff != "" {
					t.Errorf("the disk changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

func TestNoOperationTakesANameApart(t *testing.T) {
	for operation, act := range operations {
		for _, name := range []string{"", ".", "..", "dir/file", `dir\file`, "file:stream", "C:", "a\x00b", "../outside"} {
			for _, names := range [][]string{{name}, {name, "x"}, {"dir", name}} {
				t.Run(operation+" of "+strconv.Quote(strings.Join(names, ",")), func(t *testing.T) {
					tree, base := place(t)
					before := list(t, base)
					if err := act(tree, names); !errors.Is(err, fs.ErrInvalid) {
						t.Errorf("got %v", err)
					}
					if diff := cmp.Diff(before, list(t, base)); diff != "" {
						t.Errorf("the disk changed (-before +after):\n%s", diff)
					}
				})
			}
		}
	}
}

func TestTheWorkingDirectoryItselfStays(t *testing.T) {
	for _, operation := range []string{"Rmdir", "Rmdir force", "RmdirContents", "CreateSymlink"} {
		tree, base := place(t)
		before := list(t, base)
		if err := operations[operation](tree, nil); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", operation, err)
		}
		if diff := cmp.Diff(before, list(t, base)); diff != "" {
			t.Errorf("%s changed the disk (-before +after):\n%s", operation, diff)
		}
	}
}

func TestMissingWorkingDirectoryIsAnError(t *testing.T) {
	for operation, act := range operations {
		err := act(treeAt(filepath.Join(t.TempDir(), "none")), []string{"a", "b"})
		isAnswer := operation == "PathExists" || operation == "Rmdir force" || operation == "its source"
		if isAnswer && err != nil || !isAnswer && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", operation, err)
		}
	}
}

func TestChangesOnTheDisk(t *testing.T) {
	tests := []struct {
		name, operation, path string
		wantErr               error
		added, removed        []string
	}{
		{"a directory is made", "Mkdir", "new", nil, []string{"work/new"}, nil},
		{"a directory is made with its parents", "Mkdir", "new/a/b", nil, []string{"work/new", "work/new/a", "work/new/a/b"}, nil},
		{"a directory that is there is made again", "Mkdir", "dir/sub", nil, nil, nil},
		{"the working directory is made again", "Mkdir", "", nil, nil, nil},
		{"a mount point is made again", "Mkdir", "mount-dir", nil, nil, nil},
		{"a file is in the way of a directory", "Mkdir", "file", fs.ErrExist, nil, nil},
		{"a file is in the way of a parent", "Mkdir", "file/new", errNotDir, nil, nil},
		{"a link is in the way of a directory", "Mkdir", "in", fs.ErrExist, nil, nil},
		{"a dangling link is in the way of a directory", "Mkdir", "gone", fs.ErrExist, nil, nil},

		{"an empty directory is removed", "Rmdir", "dir/sub/deep", nil, nil, []string{"work/dir/sub/deep"}},
		{"a file is removed", "Rmdir", "file", nil, nil, []string{"work/file"}},
		{"a link is removed and not what it leads to", "Rmdir", "out", nil, nil, []string{"work/out -> outside"}},
		{"a dangling link is removed", "Rmdir", "gone", nil, nil, []string{"work/gone -> work/nothing"}},
		{"a mount point is removed and not what is mounted", "Rmdir", "mount-dir", nil, nil, []string{"work/mount-dir -> outside"}},
		{"a full directory is not removed", "Rmdir", "dir", fs.ErrExist, nil, nil},
		{"nothing cannot be removed", "Rmdir", "nothing", fs.ErrNotExist, nil, nil},
		{"nothing in nothing cannot be removed", "Rmdir", "nothing/x", fs.ErrNotExist, nil, nil},
		{"what is beneath a file cannot be removed", "Rmdir", "file/x", errNotDir, nil, nil},

		{"a full directory is removed by force", "Rmdir force", "dir", nil, nil, []string{"work/dir", "work/dir/file", "work/dir/sub", "work/dir/sub/deep"}},
		{"a file is removed by force", "Rmdir force", "file", nil, nil, []string{"work/file"}},
		{"a link is removed by force and not what it leads to", "Rmdir force", "out", nil, nil, []string{"work/out -> outside"}},
		{"nothing is removed by force", "Rmdir force", "nothing", nil, nil, nil},
		{"nothing in nothing is removed by force", "Rmdir force", "nothing/x", nil, nil, nil},
		{"what is beneath a file is not removed by force", "Rmdir force", "file/x", errNotDir, nil, nil},

		{"a directory is emptied", "RmdirContents", "dir", nil, nil, []string{"work/dir/file", "work/dir/sub", "work/dir/sub/deep"}},
		{"an empty directory is emptied", "RmdirContents", "dir/sub/deep", nil, nil, nil},
		{"a link is not emptied", "RmdirContents", "in", errRedirected, nil, nil},
		{"a link to elsewhere is not emptied", "RmdirContents", "out", errRedirected, nil, nil},
		{"a mount point is not emptied", "RmdirContents", "mount-dir", errRedirected, nil, nil},
		{"a file is not emptied", "RmdirContents", "file", errNotDir, nil, nil},
		{"nothing is not emptied", "RmdirContents", "nothing", fs.ErrNotExist, nil, nil},

		{"a link is made", "CreateSymlink", "new", nil, []string{"work/new -> dir"}, nil},
		{"the link that is there is made again", "CreateSymlink", "in", nil, nil, nil},
		{"another link is in the way of a link", "CreateSymlink", "out", fs.ErrExist, nil, nil},
		{"a dangling link is in the way of a link", "CreateSymlink", "gone", fs.ErrExist, nil, nil},
		{"a mount point is in the way of a link", "CreateSymlink", "mount-dir", fs.ErrExist, nil, nil},
		{"a file is in the way of a link", "CreateSymlink", "file", fs.ErrExist, nil, nil},
		{"a directory is in the way of a link", "CreateSymlink", "dir", fs.ErrExist, nil, nil},
		{"a link has no parent", "CreateSymlink", "nothing/new", fs.ErrNotExist, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree, base := place(t)
			want := map[string]bool{}
			for _, name := range append(list(t, base), test.added...) {
				want[name] = true
			}
			for _, name := range test.removed {
				if !want[name] {
					t.Fatalf("%s was not there", name)
				}
				delete(want, name)
			}
			if err := operations[test.operation](tree, split(test.path)); !errors.Is(err, test.wantErr) {
				t.Errorf("got %v, want %v", err, test.wantErr)
			}
			got := map[string]bool{}
			for _, name := range list(t, base) {
				got[name] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("on the disk (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	type answer struct {
		Yes bool
		Err error
	}
	tests := []struct {
		name, path               string
		exists, leads, directory answer
	}{
		{"the working directory", "", answer{Yes: true}, answer{Err: errRoot}, answer{Yes: true}},
		{"a directory", "dir/sub", answer{Yes: true}, answer{}, answer{Yes: true}},
		{"a file", "dir/file", answer{Yes: true}, answer{}, answer{}},
		{"a link to a directory", "in", answer{Yes: true}, answer{Yes: true}, answer{Yes: true}},
		{"a link to elsewhere", "out", answer{Yes: true}, answer{Yes: true}, answer{Yes: true}},
		{"a mount point", "mount-dir", answer{Yes: true}, answer{Yes: true}, answer{Yes: true}},
		{"a dangling link", "gone", answer{Yes: true}, answer{Yes: true}, answer{}},
		{"nothing", "nothing", answer{}, answer{Err: fs.ErrNotExist}, answer{}},
		{"nothing in nothing", "nothing/x", answer{}, answer{Err: fs.ErrNotExist}, answer{}},
		{"what is beneath a file", "file/x", answer{}, answer{Err: errNotDir}, answer{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree, _ := place(t)
			check := func(what string, ask func([]string) (bool, error), want answer) {
				t.Helper()
				got, err := ask(split(test.path))
				if got != want.Yes || !errors.Is(err, want.Err) {
					t.Errorf("%s: got %t, %v; want %t, %v", what, got, err, want.Yes, want.Err)
				}
			}
			check("exists", tree.exists, test.exists)
			check("redirection", func(names []string) (bool, error) {
				text, err := tree.redirection(names)
				return text != "", err
			}, test.leads)
			check("isDirectory", tree.isDirectory, test.directory)
		})
	}
}
