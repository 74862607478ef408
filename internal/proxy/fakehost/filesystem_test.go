package fakehost

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

const root = `C:\var\lib\kubelet`

// world is a host with a tree:
//
//	dir\           empty
//	full\file      a file
//	full\sub\deep  a directory
//	link           to full
//	dangling       to nothing
//	chain          to dangling
//	circle         to itself
//	out            to C:\Windows
//	mount\         shows FormattedVolume
//	raw\           shows UnformattedVolume
type world struct {
	t *testing.T
	*Host
	roots *safepath.Roots
}

func newWorld(t *testing.T, change func(*Options)) world {
	t.Helper()
	roots, err := safepath.NewRoots(root)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Roots: roots}
	if change != nil {
		change(&o)
	}
	w := world{t: t, Host: New(o), roots: roots}
	ctx := t.Context()
	w.must(w.Mkdir(ctx, w.path("dir")))
	w.must(w.PlantFile(w.path(`full\file`)))
	w.must(w.Mkdir(ctx, w.path(`full\sub\deep`)))
	w.must(w.CreateSymlink(ctx, w.path("full"), w.path("link")))
	w.must(w.CreateSymlink(ctx, w.path("nothing"), w.path("dangling")))
	w.must(w.CreateSymlink(ctx, w.path("dangling"), w.path("chain")))
	w.must(w.CreateSymlink(ctx, w.path("circle"), w.path("circle")))
	w.must(w.PlantLink(w.path("out"), `C:\Windows`))
	w.must(w.Mkdir(ctx, w.path("mount")))
	w.must(w.MountVolume(ctx, FormattedVolume, w.path("mount"), handler.Permits{}))
	w.must(w.Mkdir(ctx, w.path("raw")))
	w.must(w.MountVolume(ctx, UnformattedVolume, w.path("raw"), handler.Permits{}))
	w.ledger = nil
	return w
}

func (w world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w world) path(rel string) safepath.Path {
	w.t.Helper()
	text := root
	if rel != "" {
		text += `\` + rel
	}
	p, err := w.roots.Check(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w world) exists(rel string) bool {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	at, _, err := w.walk(w.path(rel), way{follow: true, links: maxLinks}) // as others on the node see it
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatalf("walk to %s: %v", rel, err)
	}
	return at.node != nil
}

func TestFilesystemRefuses(t *testing.T) {
	tests := []struct {
		name string
		do   func(w world) error
		want error
	}{
		{"removal of what is not there", func(w world) error { return w.Rmdir(t.Context(), w.path("none"), false) }, fs.ErrNotExist},
		{"removal below what is not there", func(w world) error { return w.Rmdir(t.Context(), w.path(`none\x`), false) }, fs.ErrNotExist},
		{"removal of a directory with something in it", func(w world) error { return w.Rmdir(t.Context(), w.path("full"), false) }, fs.ErrExist},
		{"removal of the working directory", func(w world) error { return w.Rmdir(t.Context(), w.path(""), true) }, fs.ErrPermission},
		{"removal through a link that leads out", func(w world) error { return w.Rmdir(t.Context(), w.path(`out\System32`), true) }, fs.ErrPermission},
		{"emptying the working directory", func(w world) error { return w.RmdirContents(t.Context(), w.path("")) }, fs.ErrPermission},
		{"emptying what is not there", func(w world) error { return w.RmdirContents(t.Context(), w.path("none")) }, fs.ErrNotExist},
		{"emptying a link", func(w world) error { return w.RmdirContents(t.Context(), w.path("link")) }, handler.ErrPrecondition},
		{"emptying a link that leads out", func(w world) error { return w.RmdirContents(t.Context(), w.path("out")) }, handler.ErrPrecondition},
		{"emptying a mount point", func(w world) error { return w.RmdirContents(t.Context(), w.path("mount")) }, handler.ErrPrecondition},
		{"emptying a file", func(w world) error { return w.RmdirContents(t.Context(), w.path(`full\file`)) }, handler.ErrPrecondition},
		{"a directory where a file is", func(w world) error { return w.Mkdir(t.Context(), w.path(`full\file`)) }, fs.ErrExist},
		{"a directory below a file", func(w world) error { return w.Mkdir(t.Context(), w.path(`full\file\x`)) }, fs.ErrExist},
		{"a directory where a dangling link is", func(w world) error { return w.Mkdir(t.Context(), w.path("dangling")) }, fs.ErrExist},
		{"a directory through a dangling link", func(w world) error { return w.Mkdir(t.Context(), w.path(`dangling\x`)) }, errRedirected},
		{"a directory through a link", func(w world) error { return w.Mkdir(t.Context(), w.path(`link\x`)) }, errRedirected},
		{"a directory at a link", func(w world) error { return w.Mkdir(t.Context(), w.path("link")) }, fs.ErrExist},
		{"a directory through a mount point", func(w world) error { return w.Mkdir(t.Context(), w.path(`mount\x`)) }, errRedirected},
		{"removal through a link", func(w world) error { return w.Rmdir(t.Context(), w.path(`link\file`), true) }, errRedirected},
		{"emptying through a link", func(w world) error { return w.RmdirContents(t.Context(), w.path(`link\sub`)) }, errRedirected},
		{"a link made through a link", func(w world) error { return w.CreateSymlink(t.Context(), w.path("dir"), w.path(`link\l`)) }, errRedirected},
		{"a volume mounted through a link", func(w world) error {
			return w.MountVolume(t.Context(), FormattedVolume, w.path(`link\sub\deep`), handler.Permits{})
		}, errRedirected},
		{"the question what is behind a link", func(w world) error { _, err := w.PathExists(t.Context(), w.path(`link\file`)); return err }, errRedirected},
		{"the question whether there is a link behind a link", func(w world) error { _, err := w.IsSymlink(t.Context(), w.path(`link\sub`)); return err }, errRedirected},
		{"a directory through a link that leads out", func(w world) error { return w.Mkdir(t.Context(), w.path(`out\x`)) }, fs.ErrPermission},
		{"a directory through a link to itself", func(w world) error { return w.Mkdir(t.Context(), w.path(`circle\x`)) }, errRedirected},
		{"a directory on a volume without a file system", func(w world) error { return w.Mkdir(t.Context(), w.path(`raw\x`)) }, errRedirected},
		{"a link in a directory that is not there", func(w world) error { return w.CreateSymlink(t.Context(), w.path("full"), w.path(`none\l`)) }, fs.ErrNotExist},
		{"a link where a directory is", func(w world) error { return w.CreateSymlink(t.Context(), w.path("full"), w.path("dir")) }, fs.ErrExist},
		{"a link where a mount point is", func(w world) error { return w.CreateSymlink(t.Context(), w.path("full"), w.path("mount")) }, fs.ErrExist},
		{"a link where a link to something else is", func(w world) error { return w.CreateSymlink(t.Context(), w.path("dir"), w.path("link")) }, fs.ErrExist},
		{"a link to no path", func(w world) error { return w.CreateSymlink(t.Context(), safepath.Path{}, w.path("new")) }, fs.ErrInvalid},
		{"no path at all", func(w world) error { return w.Mkdir(t.Context(), safepath.Path{}) }, fs.ErrInvalid},
		{"the question whether a missing path is a link", func(w world) error { _, err := w.IsSymlink(t.Context(), w.path("none")); return err }, fs.ErrNotExist},
		{"the question whether a link that leads out is good", func(w world) error { _, err := w.IsSymlink(t.Context(), w.path("out")); return err }, fs.ErrPermission},
		{"the question what lies behind a link that leads out", func(w world) error { _, err := w.PathExists(t.Context(), w.path(`out\notepad.exe`)); return err }, fs.ErrPermission},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			if err := tt.do(w); !errors.Is(err, tt.want) {
				t.Fatalf("error = %v, want %v", err, tt.want)
			}
			for _, kept := range []string{"", "dir", `full\file`, `full\sub\deep`, "link", "dangling", "out", "mount"} {
				if !w.exists(kept) {
					t.Errorf("%q is gone", kept)
				}
			}
			for i, e := range w.Ledger() {
				if e.Changed || i == 0 && e.Err == "" {
					t.Errorf("the ledger says %+v of a refused operation", e)
				}
			}
		})
	}
}

func TestFilesystemActs(t *testing.T) {
	tests := []struct {
		name    string
		do      func(w world) error
		there   []string
		gone    []string
		changed bool
	}{
		{"a directory and its parents", func(w world) error { return w.Mkdir(t.Context(), w.path(`a\b\c`)) }, []string{`a\b\c`, `A\B`}, nil, true},
		{"a directory that is there in another spelling", func(w world) error { return w.Mkdir(t.Context(), w.path("DIR")) }, []string{"dir"}, nil, false},
		{"the working directory, which is there", func(w world) error { return w.Mkdir(t.Context(), w.path("")) }, []string{""}, nil, false},
		{"removal of an empty directory", func(w world) error { return w.Rmdir(t.Context(), w.path("Dir"), false) }, nil, []string{"dir"}, true},
		{"removal of a file", func(w world) error { return w.Rmdir(t.Context(), w.path(`full\file`), false) }, []string{"full"}, []string{`full\file`}, true},
		{"removal of a link leaves what it leads to", func(w world) error { return w.Rmdir(t.Context(), w.path("link"), false) }, []string{`full\file`}, []string{"link"}, true},
		{"forced removal of a link leaves what it leads to", func(w world) error { return w.Rmdir(t.Context(), w.path("link"), true) }, []string{`full\file`}, []string{"link"}, true},
		{"forced removal of a link that leads out", func(w world) error { return w.Rmdir(t.Context(), w.path("out"), true) }, nil, []string{"out"}, true},
		{"forced removal of everything beneath", func(w world) error { return w.Rmdir(t.Context(), w.path("full"), true) }, []string{"link"}, []string{"full", `full\sub\deep`, `link\file`}, true},
		{"forced removal of what is not there", func(w world) error { return w.Rmdir(t.Context(), w.path(`none\x`), true) }, nil, nil, false},
		{"emptying a directory", func(w world) error { return w.RmdirContents(t.Context(), w.path("full")) }, []string{"full"}, []string{`full\file`, `full\sub`}, true},
		{"emptying an empty directory", func(w world) error { return w.RmdirContents(t.Context(), w.path("dir")) }, []string{"dir"}, nil, false},
		{"a link to what is not there yet", func(w world) error { return w.CreateSymlink(t.Context(), w.path("later"), w.path("new")) }, []string{"new"}, []string{"later"}, true},
		{"a link that is there already", func(w world) error { return w.CreateSymlink(t.Context(), w.path("FULL"), w.path("link")) }, []string{"link"}, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.must(tt.do(w))
			if got := w.Ledger()[0]; got.Changed != tt.changed || got.Err != "" {
				t.Errorf("ledger = %+v, want changed %v", got, tt.changed)
			}
			for _, p := range tt.there {
				if !w.exists(p) {
					t.Errorf("%q is not there", p)
				}
			}
			for _, p := range tt.gone {
				if w.exists(p) {
					t.Errorf("%q is there", p)
				}
			}
		})
	}
}

func TestForcedRemovalLeavesLinkedAndMountedContents(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	w.must(w.PlantFile(w.path(`mount\data`)))
	w.must(w.Mkdir(ctx, w.path(`dir\m`)))
	w.must(w.MountVolume(ctx, FormattedVolume, w.path(`dir\m`), handler.Permits{}))
	w.must(w.CreateSymlink(ctx, w.path("full"), w.path(`dir\l`)))
	if !w.exists(`dir\m\data`) || !w.exists(`dir\l\file`) {
		t.Fatal("the volume or the link shows nothing")
	}
	w.must(w.Rmdir(ctx, w.path("dir"), true))
	for _, kept := range []string{`mount\data`, `full\file`} {
		if !w.exists(kept) {
			t.Errorf("%s went with what led to it", kept)
		}
	}
}

func TestIsSymlinkTellsLinksAndMountPoints(t *testing.T) {
	w := newWorld(t, nil)
	for path, want := range map[string]bool{
		"dir": false, `full\file`: false, "link": true, "LINK": true, "dangling": false, "chain": true, "mount": true, "": false,
	} {
		if got, err := w.IsSymlink(t.Context(), w.path(path)); got != want || err != nil {
			t.Errorf("IsSymlink(%q) = %v, %v, want %v", path, got, err, want)
		}
	}
	if !w.exists("dangling") {
		t.Error("a dangling link does not exist, but it does: the last component is not followed")
	}
}

func TestNamesKeepTheirFirstSpelling(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.Mkdir(t.Context(), w.path(`Pods\Ünïcode`)))
	w.must(w.Mkdir(t.Context(), w.path(`PODS\üNÏCODE`)))
	if got, err := w.Name(w.path(`pods\ünïcode`)); got != "Ünïcode" || err != nil {
		t.Errorf("Name = %q, %v", got, err)
	}
}
