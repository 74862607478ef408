package pipepath

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hostPaths(t testing.TB, paths ...string) *Powers {
	t.Helper()
	p, err := NewHostPaths(paths)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPlaceIsSaidOfGuardedHostPaths(t *testing.T) {
	p := hostPaths(t, `C:\var\lib\kubelet`, `C:\var\lib\kubelet\pki`, `c:/opt/CNI/`, `D:\`, `C:\Users`, `C:\Documents and Settings\All Users`)
	kubelet, pki, cni := `C:\var\lib\kubelet`, `C:\var\lib\kubelet\pki`, `c:/opt/CNI/`
	for path, want := range map[string]Reach{
		`C:\var\lib\kubelet`:                    {PowerDirectory, PlacePath, kubelet},
		`/var/lib/kubelet/`:                     {PowerDirectory, PlacePath, kubelet},
		`C:\var\lib\kubelet\plugins\x\csi.sock`: {PowerDirectory, PlaceBeneath, kubelet},
		`c:/VAR/lib/kubelet/PKI`:                {PowerDirectory, PlacePath, pki},
		`C:\var\lib\kubelet\pki\key`:            {PowerDirectory, PlaceBeneath, pki},
		`C:\var\lib`:                            {PowerDirectory, PlaceAbove, kubelet},
		`/var`:                                  {PowerDirectory, PlaceAbove, kubelet},
		`/opt`:                                  {PowerDirectory, PlaceAbove, cni},
		`//opt/cni/bin`:                         {PowerDirectory, PlaceBeneath, cni},
		`C:\`:                                   {PowerDirectory, PlaceAbove, kubelet},
		`/`:                                     {PowerDirectory, PlaceAbove, kubelet},
		`D:\`:                                   {PowerDirectory, PlacePath, `D:\`},
		`D:\x`:                                  {},
		`E:\`:                                   {},
		`C:\x\...\y`:                            {PowerDirectory, PlaceAbove, ""},
		`C:\VAR~1\lib\kubelet\x`:                {PowerDirectory, PlaceBeneath, kubelet},
		`\\.\PhysicalDrive0`:                    {PowerDisk, PlaceAbove, ""},
		`\\.\C:`:                                {PowerDisk, PlaceAbove, ""},
		`\\host\c$\x`:                           {PowerShare, PlaceAbove, ""},
		`\\.\pipe\containerd-containerd`:        {},
		`C:\var\log`:                            {},
		`C:\Documents and Settings`:             {PowerDirectory, PlacePath, `C:\Users`},
		`c:/documents AND settings./x`:          {PowerDirectory, PlaceBeneath, `C:\Users`},
		`C:\Documents and Settings\All Users\x`: {PowerDirectory, PlaceBeneath, `C:\Documents and Settings\All Users`},
		`C:\Users\All Users`:                    {PowerDirectory, PlacePath, `C:\Documents and Settings\All Users`},
		`C:\ProgramData`:                        {PowerDirectory, PlacePath, `C:\Documents and Settings\All Users`},
		`/opt/cnis`:                             {},
		`C:\` + "k":                             {},
	} {
		if diff := cmp.Diff(want, p.JudgeMount(path, "")); diff != "" {
			t.Errorf("%+q (-want +got):\n%s", path, diff)
		}
	}
	if got := p.JudgeMount(`C:\x`, `..\opt\cni\bin`); got != (Reach{PowerDirectory, PlaceBeneath, cni}) {
		t.Errorf("by a subPath: %+v", got)
	}
	if got := p.JudgeMountExpr(`/opt`, `$(X)`); got != (Reach{PowerDirectory, PlaceAbove, cni}) {
		t.Errorf("by a variable: %+v", got)
	}
	if got := hostPaths(t).JudgeMount(`C:\`, ""); got != (Reach{}) {
		t.Errorf("nothing is listed: %+v", got)
	}
}

func TestADirectoryHoldsWhatIsCertainlyInIt(t *testing.T) {
	listed, err := ParseDirectory(`C:\var\lib\kubelet\plugins`)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range [][2]string{
		{`C:\var\lib\kubelet\plugins`, ""}, {`c:\VAR\Lib\kubelet\Plugins\`, ""}, {`/var/lib/kubelet/plugins/x`, ""}, {`C:/var//lib/kubelet\plugins`, `x\y`},
		{`\var\lib\kubelet\plugins`, "/x"},
	} {
		if d, ok := MountedDirectory(m[0], m[1]); !ok || !listed.Holds(d) {
			t.Errorf("%q is not in it", m)
		}
	}
	for _, m := range [][2]string{
		{``, ""}, {`/`, ""}, {`C:\`, ""}, {`C:\var\lib\kubelet`, ""}, {`C:\var\lib\kubelet`, `plugins`}, {`C:\var\lib\kubelet\pluginsx`, ""}, {`D:\var\lib\kubelet\plugins`, ""},
		{`C:\var\lib\kubelet\plugins\..\pki`, ""}, {`C:\var\lib\kubelet\plugins\..`, ""}, {`C:\var\lib\kubelet\plugins`, `..\pki`}, {`C:\var\lib\kubelet\plugins`, `x\..`},
		{`//var/lib/kubelet/plugins`, ""}, {`\\?\C:\var\lib\kubelet\plugins`, ""}, {`\\.\pipe\x`, ""}, {`var\lib\kubelet\plugins`, ""}, {`C:var\lib\kubelet\plugins`, ""},
		{`C:\var\lib\kubelet\plugins.`, ""}, {`C:\var\lib\kubelet\plugins\x `, ""}, {`C:\var\lib\kubelet\PLUGIN~1`, ""}, {`C:\var\lib\kubelet\plugins\X~1`, ""},
		{"C:\\var\\lib\\kubelet\\plugin\u017f", ""}, {"\u212a:\\var\\lib\\kubelet\\plugins", ""}, {`C:\var\lib\kubelet\plugins:x`, ""}, {`C:\var\lib\kubelet\plugins`, `x:y`},
		{"C:\\var\\lib\\kubelet\\plugins\\\x00", ""}, {`C:`, `\var\lib\kubelet\plugins`}, {``, `C:\var\lib\kubelet\plugins`}, {`/C:\var\lib\kubelet\plugins`, ""},
	} {
		if d, ok := MountedDirectory(m[0], m[1]); ok && listed.Holds(d) {
			t.Errorf("%q is in it", m)
		}
	}
}

// To a guard of a directory, what it holds is the directory itself or beneath it.
func FuzzWhatADirectoryHoldsIsInIt(f *testing.F) {
	for _, path := range powerSeeds(f) {
		f.Add(path, "x")
		f.Add(`C:\var\lib\kubelet\plugins`, path)
	}
	const text = `C:\var\lib\kubelet\plugins`
	listed, err := ParseDirectory(text)
	if err != nil {
		f.Fatal(err)
	}
	p := hostPaths(f, text)
	f.Fuzz(func(t *testing.T, hostPath, subPath string) {
		d, ok := MountedDirectory(hostPath, subPath)
		if !ok || !listed.Holds(d) {
			return
		}
		for _, path := range []string{hostPath, joinSubPath(hostPath, subPath)} {
			if at := p.judge(path); at.Directory != text || at.Place != PlacePath && at.Place != PlaceBeneath {
				t.Fatalf("%+q and %+q are held, and %+q is %+v", hostPath, subPath, path, at)
			}
		}
	})
}
