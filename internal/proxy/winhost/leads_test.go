//go:build linux

package winhost

import (
	"context"
	"io/fs"
	"slices"
	"testing"
)

func TestIsSymlinkFollowsTheTextOfALinkNoFurtherThanARequestsPath(t *testing.T) {
	tests := []struct {
		name, text string
		want       bool
		kind       error
	}{
		{"to a directory", `C:\work\dir`, true, nil},
		{"in other case and with separators", `c:\\WORK\dir\\`, true, nil},
		{"to a working directory", `D:\more`, true, nil},
		{"to a file", `C:\work\file`, true, nil},
		{"to a link that leads out", `C:\work\out`, true, nil}, // the last name is not followed
		{"to a link that leads to itself", `C:\work\loop`, true, nil},
		{"to a mount point", `C:\work\mount-b`, true, nil},
		{"to a volume", string(volumeA), true, nil},
		{"to nothing", `C:\work\nothing`, false, nil},
		{"to nothing in nothing", `C:\work\nothing\x`, false, nil},
		{"to what is beneath a file", `C:\work\file\x`, false, nil},
		{"to a volume that is gone", string(volumeX), false, nil},

		{"through a link that leads out", `C:\work\out\secret`, false, fs.ErrPermission},
		{"through a link to another machine", `C:\work\unc\x`, false, fs.ErrPermission},
		{"through a link that stays within", `C:\work\in\file`, false, fs.ErrPermission},
		{"through a mount point", `C:\work\mount-b\deep`, false, fs.ErrPermission},
		{"through a link to itself", `C:\work\loop\x`, false, fs.ErrPermission},
		{"out", `C:\outside\secret`, false, fs.ErrPermission},
		{"out, to nothing", `C:\outside\nothing`, false, fs.ErrPermission},
		{"out by dots", `C:\work\..\outside\secret`, false, fs.ErrPermission},
		{"to the system", `C:\Windows\System32\config\SAM`, false, fs.ErrPermission},
		{"to a drive", `C:\`, false, fs.ErrPermission},
		{"to a path on a volume", string(volumeB) + `deep`, false, fs.ErrPermission},
		{"to a device", `\\.\PhysicalDrive0`, false, fs.ErrPermission},
		{"to a pipe", `\\.\pipe\x`, false, fs.ErrPermission},
		{"to a device of the kernel", `\\?\GLOBALROOT\Device\Mup\evil\share`, false, fs.ErrPermission},
		{"to another machine in the long form", `\\?\UNC\evil\share`, false, fs.ErrPermission},
		{"to the long form", `\\?\C:\work\dir`, false, fs.ErrPermission},
		{"to a stream", `C:\work\file:s`, false, fs.ErrPermission},
		{"to a short name", `C:\work\DIR~1`, false, fs.ErrPermission},
		{"to a relative path", `..\outside\secret`, false, fs.ErrPermission},
		{"to a name", `dir`, false, fs.ErrPermission},
		{"to a drive's own directory", `C:dir`, false, fs.ErrPermission},
		{"to forward slashes", `C:/work/dir`, false, fs.ErrPermission},
	}
	for _, test := range tests {
		for _, name := range []string{"link", "mount-x"} {
			t.Run(name+" "+test.name, func(t *testing.T) {
				_, _, g := newMounts(t)
				g.write("C/work/file")
				g.write("C/outside/secret")
				g.mkdir("volumes/00000000-0000-0000-0000-00000000000b/deep")
				for rel, text := range map[string]string{
					"out": g.real(`C:\outside`), "in": g.real(`C:\work\dir`), "unc": `\\evil\share`, "loop": g.real(`C:\work\loop`), "mount-b": string(volumeB), name: test.text,
				} {
					g.link("C/work/"+rel, text)
				}
				files := &Filesystem{g.places(), func(_ context.Context, text string) (bool, error) {
					t.Errorf("%s is asked about as a share", text)
					return true, nil
				}, fakeMounts{g}}
				is, err := files.IsSymlink(t.Context(), g.path(`C:\work\`+name))
				if is != test.want {
					t.Errorf("got %t", is)
				}
				wants(t, err, test.kind)
				for _, path := range g.opened {
					if !slices.Contains([]string{`C:\work`, `D:\more`}, path) {
						t.Errorf("%s was opened by its text", path)
					}
				}
			})
		}
	}
}

func TestIsSymlinkIsFalseForWhatIsNoLink(t *testing.T) {
	_, _, g := newMounts(t)
	g.write("C/work/file")
	files := &Filesystem{g.places(), nil, nil}
	for _, path := range []string{`C:\work`, `C:\work\dir`, `C:\work\file`} {
		if is, err := files.IsSymlink(t.Context(), g.path(path)); is || err != nil {
			t.Errorf("%s: %t, %v", path, is, err)
		}
	}
	_, err := files.IsSymlink(t.Context(), g.path(`C:\work\nothing`))
	wants(t, err, fs.ErrNotExist)
}
