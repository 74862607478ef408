package winhost

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/Microsoft/go-winio"
)

// hasLinks says whether this file system holds reparse points. Wine's does not.
func hasLinks(t *testing.T, d disk) bool {
	t.Helper()
	probe := filepath.Join(d.root, "probe")
	if err := os.Symlink(filepath.Join(d.root, "nothing"), probe); err != nil {
		return false
	}
	info, err := os.Lstat(probe)
	if err != nil {
		return false
	}
	return errors.Join(os.Remove(probe)) == nil && info.Mode().Type() == fs.ModeSymlink
}

func TestCreateSymlinkMakesTheLinkOrSaysThatItDidNot(t *testing.T) {
	d, ctx := newDisk(t), context.Background()
	d.mkdir("dir")
	err := d.CreateSymlink(ctx, d.path("dir"), d.path("link"))
	if !hasLinks(t, d) {
		if err == nil {
			t.Error("a link that cannot be made is said to have been made")
		}
		if d.has("link") {
			t.Error("what was to become the link is left behind")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.Readlink(filepath.Join(d.root, "link")); err != nil || text != filepath.Join(d.root, "dir") {
		t.Errorf("it leads to %q, %v", text, err)
	}
	if err := d.CreateSymlink(ctx, d.path("dir"), d.path("link")); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := d.CreateSymlink(ctx, d.path("other"), d.path("link")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another: %v", err)
	}
	if is, err := d.IsSymlink(ctx, d.path("link")); err != nil || !is {
		t.Errorf("IsSymlink: %t, %v", is, err)
	}
	if err := d.Rmdir(ctx, d.path("link"), true); err != nil || d.has("link") || !d.has("dir") {
		t.Errorf("Rmdir of the link: %v", err)
	}
}

func TestCreateSymlinkRefusesWhatIsInTheWay(t *testing.T) {
	d, ctx := newDisk(t), context.Background()
	d.mkdir("dir")
	d.write("file")
	for rel, want := range map[string]error{"": fs.ErrPermission, "file": fs.ErrExist, "dir": fs.ErrExist, `nothing\x`: fs.ErrNotExist, `file\x`: errNotDir} {
		if err := d.CreateSymlink(ctx, d.path("dir"), d.path(rel)); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", rel, err, want)
		}
	}
}

// The library that Windows containers are made with writes the same buffers.
func TestEncodeSymlinkAgreesWithGoWinio(t *testing.T) {
	for _, target := range []string{`C:\a`, `C:\var\lib\kubelet\plugins\x\stage`, `D:\ä\𝄞`, `\\server\share`, `\\server\share\Sub\ä`} {
		got, err := encodeSymlink(target)
		if err != nil {
			t.Fatal(err)
		}
		if want := winio.EncodeReparsePoint(&winio.ReparsePoint{Target: target}); hex.EncodeToString(got) != hex.EncodeToString(want) {
			t.Errorf("%s\ngot  %x\nwant %x", target, got, want)
		}
	}
}

// linked is a working directory with a link "out" that leads to a directory outside with a file "secret".
// Wine makes no links, so there the one who runs the tests puts a Unix link into the prefix.
func linked(t *testing.T) (d disk, outside string) {
	t.Helper()
	if base := os.Getenv("PIPEGUARD_LINKED"); base != "" {
		return diskAt(t, filepath.Join(base, "work")), filepath.Join(base, "outside")
	}
	d = newDisk(t)
	if !hasLinks(t, d) {
		t.Skip("NOT TESTED: no links can be made here; run through test/windows/run.sh, which sets PIPEGUARD_LINKED")
	}
	outside, err := os.MkdirTemp("", "outside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600), os.Symlink(outside, filepath.Join(d.root, "out"))); err != nil {
		t.Fatal(err)
	}
	return d, outside
}

func TestNothingOnTheDiskIsReachedThroughALink(t *testing.T) {
	d, outside := linked(t)
	ctx := context.Background()
	if _, err := os.Stat(filepath.Join(d.root, "out", "secret")); err != nil {
		t.Fatalf("the link does not lead out, so nothing would be shown: %v", err)
	}
	secret, fresh := d.path(`out\secret`), d.path(`out\new`)
	operations := map[string]func() error{
		"PathExists":                  func() error { _, err := d.PathExists(ctx, secret); return err },
		"Mkdir":                       func() error { return d.Mkdir(ctx, fresh) },
		"Mkdir with parents":          func() error { return d.Mkdir(ctx, d.path(`out\new\a`)) },
		"Rmdir":                       func() error { return d.Rmdir(ctx, secret, false) },
		"Rmdir by force":              func() error { return d.Rmdir(ctx, secret, true) },
		"RmdirContents":               func() error { return d.RmdirContents(ctx, d.path(`out\new`)) },
		"RmdirContents of the link":   func() error { return d.RmdirContents(ctx, d.path("out")) },
		"IsSymlink":                   func() error { _, err := d.IsSymlink(ctx, secret); return err },
		"CreateSymlink through it":    func() error { return d.CreateSymlink(ctx, d.path("x"), fresh) },
		"CreateSymlink to beneath it": func() error { return d.CreateSymlink(ctx, secret, d.path("x")) },
	}
	for name, operation := range operations {
		if err := operation(); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 || entries[0].Name() != "secret" {
		t.Errorf("outside there is now %v, %v", entries, err)
	}
}
