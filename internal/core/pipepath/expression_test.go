package pipepath

import (
	"strings"
	"testing"
)

func TestAVariableThatMayLeadToAPipeMatches(t *testing.T) {
	g := defaultGuard(t)
	for _, m := range [][2]string{
		{`\`, `$(X)`}, {`/`, `$(X)`}, {`/`, ` $(X)`}, {`/`, `.$(X)`}, {`\`, `\.\$(X)`}, {`\`, `/$(X)`}, {`\.`, `$(X)`}, {`/./.`, `$(X)`},
		{`/`, `D$(X)`}, {`/`, `?$(X)`}, {`/`, `device$(X)`}, {`/Device`, `$(X)`}, {`/device`, `Named$(X)`}, {`/device /.`, `$(X)`},
		{`/device/mup`, `$(X)`}, {`/device`, `mu$(X)`}, {`/device/vmsmb`, `x$(X)`}, {`\.\Device`, `$(X)`}, {`/./device/mup`, `h/$(X)`}, {`/ `, `$(X)`}, {`\\.\Device`, `$(X)`}, {`/DosDevices`, `$(X)`}, {`/global`, `x\..\$(X)`},
		{`/glo`, `..\$(X)`}, {`/`, `glob$(X)`}, {`/GLOBAL??`, `$(X)`},
		{``, `$(X)`}, {``, `\\.\pipe\$(X)`}, {``, `npi$(X)`}, {``, `UVM:$(X)`}, {``, `\\h\ipc$$\$(X)`},
		{`\\.\pipe\a`, `$(X)`}, {`\\.\pipe\csi-proxy-disk-v1`, `$(X)`}, {`\\.\mailslot`, `a-$(X)`}, {`\\fs\data`, `$(X)`}, {`\\?\C:\x`, `$(X)`},
		{`/var/log`, `$(X)\..\..\$(Y)`}, {`/var/log`, `$(X)\..\..\??\pipe`}, {`/`, `$(X)$$(X)`}, {`/`, `$()`},
	} {
		v := g.JudgeMountExpr(m[0], m[1])
		if !v.Match || !v.NeverAllowed || !v.Kind.NeverAllowed() {
			t.Errorf("%+q with %+q: %+v", m[0], m[1], v)
		}
	}
}

func TestAVariableBelowAnOrdinaryDirectoryDoesNotMatch(t *testing.T) {
	g := defaultGuard(t)
	for _, m := range [][2]string{
		{`/var/log`, `$(POD_NAME)`}, {`/var/log/`, `$(NAMESPACE)/$(POD_NAME)`}, {`/./var`, `$(X)`}, {`/`, `logs/$(X)`}, {`/`, `logs-$(X)`},
		{`C:\var\log`, `$(POD_NAME)`}, {`C:\`, `$(X)`}, {`c:/data`, `x-$(X)`}, {`/device/tty`, `$(X)`}, {`/devices`, `$(X)`}, {`/dev`, `$(X)`},
		{`data`, `$(X)`}, {`npipe`, `$(X)`}, {`/`, `$$(X)`}, {`/`, `$(X`}, {`/`, `$X)`}, {`/`, `$`}, {`/`, ``}, {`/`, `a$$$$(X)`},
	} {
		if v := g.JudgeMountExpr(m[0], m[1]); v.Match {
			t.Errorf("%+q with %+q: %+v", m[0], m[1], v)
		}
	}
}

func TestAnEscapedVariableIsText(t *testing.T) {
	for expr, want := range map[string]string{
		"$$(X)": "$(X)", "$$": "$", "$(X": "$(X", "$X": "$X", "a)$(": "a)$(", "$$$$(X)": "$$(X)", "": "", "ipc$$": "ipc$",
	} {
		if got, ok := Constant(expr); !ok || got != want {
			t.Errorf("%q: %q, %v", expr, got, ok)
		}
	}
	for _, expr := range []string{"$(X)", "$$$(X)", "$()", "a$(b", "$($(X)"} {
		if got, ok := Constant(expr); ok != !strings.HasSuffix(expr, ")") {
			t.Errorf("%q: %q, %v", expr, got, ok)
		}
	}
}

func TestAVariableMayNameADirectoryOfPower(t *testing.T) {
	p, err := NewPowers(DefaultPowerPipes(), []string{`C:\Windows`})
	if err != nil {
		t.Fatal(err)
	}
	for m, want := range map[[2]string]Power{
		{`C:\`, `$(X)`}: PowerDirectory, {`/`, `Win$(X)`}: PowerDirectory, {`C:\x`, `$(X)\..\..\Windows`}: PowerDirectory,
		{`\\.\pipe`, `docker$(X)`}: PowerPipe, {`C:\Windows`, `$(X)`}: PowerDirectory,
		{`C:\`, `$$(X)`}: PowerNone, {`C:\data`, `$(X)`}: PowerNone, {`/var/log`, `$(X)`}: PowerNone, {`D:\`, `$(X)`}: PowerNone,
	} {
		if got := p.JudgeMountExpr(m[0], m[1]).Power; got != want {
			t.Errorf("%q with %q: %q, want %q", m[0], m[1], got, want)
		}
	}
}

// Of a PersistentVolume the path alone is seen. Here are paths with a subPath each that makes a pipe's path of them; the subPath
// proves that refusing the volume is not caution without a reason.
func TestAVolumeThatASubPathMakesAPipeMatches(t *testing.T) {
	g := defaultGuard(t)
	for _, m := range [][2]string{
		{`\`, `\.\pipe\csi-proxy-disk-v1`}, {`/`, `/./pipe/csi-proxy-disk-v1`}, {`/`, `??\pipe\csi-proxy-disk-v1`}, {`\`, `Device\NamedPipe\csi-proxy-disk-v1`},
		{`/.`, `??\pipe\csi-proxy`}, {`/.`, `device/namedpipe/csi-proxy`}, {`\.\Device`, `NamedPipe\csi-proxy`}, {`/./GLOBAL??`, `pipe/csi-proxy`}, {`\ `, `??\pipe\csi-proxy`},
		{`\\.\Device`, `NamedPipe\csi-proxy`}, {`\\.\Sessions\0`, `DosDevices\x\pipe\csi-proxy`}, {`\.\Device\Mup`, `h\pipe\csi-proxy`}, {`\. \.`, `??\pipe\csi-proxy`}, {`\Device`, `NamedPipe\csi-proxy-disk-v1`}, {`/device/`, `namedpipe/csi-proxy`},
		{`/DEVICE.`, `NamedPipe\csi-proxy`}, {`\Device\Mup`, `localhost\pipe\csi-proxy`}, {`/device/lanmanredirector`, `h/IPC$/csi-proxy`},
		{`\DosDevices`, `pipe\csi-proxy-disk-v1`}, {`/GLOBAL??`, `pipe/csi-proxy-disk-v1`}, {`\dosdevices.\`, `pipe\csi-proxy`}, {``, `\\.\pipe\csi-proxy`},
		{`\\.`, `pipe\csi-proxy`}, {`\\.\`, `pipe\csi-proxy`}, {`\\?\`, `pipe\csi-proxy`}, {`\??`, `pipe\csi-proxy`}, {`\\host`, `pipe\csi-proxy`}, {`npipe:`, `//./pipe/csi-proxy`},
	} {
		if v := g.JudgeMount(m[0], m[1]); !v.Match {
			t.Errorf("%+q with %+q: %+v", m[0], m[1], v)
		}
		if v := g.JudgeAnyMount(m[0]); !v.Match || !v.NeverAllowed || !v.Kind.NeverAllowed() {
			t.Errorf("%+q: %+v", m[0], v)
		}
	}
}

func TestAVolumeThatNoSubPathMakesAPipeIsJudgedByItsPath(t *testing.T) {
	g := defaultGuard(t)
	for _, path := range []string{
		`/data`, `/mnt/disks/ssd0`, `/var/lib/x/`, `/d`, `/dev`, `/devices`, `/Device1`, `/glob`, `/global`, `/./var`, `C:\`, `c:/`, `C:`, `C:\data`, `D:\data`, `\data`, `data`, `.`,
		`/device/tty`, `/home/??/x`, `/run/x.`, `\\.\pipe\printer`, `\\fs\data`, `\\fs\data\x`, `\\?\C:\x`, `\\.\mailslot`, `\\.\C:`,
		`\\.\pipe\csi-proxy-disk-v1`, `\Device\NamedPipe\csi-proxy-disk-v1`, `\\.\pipe\..\x`,
	} {
		if got, want := g.JudgeAnyMount(path), g.Judge(path); got != want {
			t.Errorf("%+q: %+v, want %+v", path, got, want)
		}
	}
}

func FuzzNoSubPathHidesAPipeBehindAVolume(f *testing.F) {
	for _, hostPath := range append(seeds(f), `/`, `\`, `/d`, `/var`, `/.`, `/device`, `/device/mup`, `/dosdevices`, ``, `\\.\pipe\x`, `\\fs\data`, `\\?\UNC\.\x`) {
		for _, subPath := range []string{`\.\pipe\csi-proxy`, `.\pipe\csi-proxy`, `??\pipe\csi-proxy`, `namedpipe\csi-proxy`, `device/namedpipe/csi-proxy`, `pipe/csi-proxy`, `h\pipe\csi-proxy`, `csi-proxy`} {
			f.Add(hostPath, subPath)
		}
	}
	g := defaultGuard(f)
	f.Fuzz(func(t *testing.T, hostPath, subPath string) {
		if strings.Contains(subPath, "..") || unspeakable(Fold(subPath)) {
			return // no kubelet mounts the one, no file system has the other
		}
		if below := g.JudgeMount(hostPath, subPath); below.Match && !g.JudgeAnyMount(hostPath).Match {
			t.Fatalf("%+q is admitted, and with subPath %+q it is %+v", hostPath, subPath, below)
		}
	})
}

func TestAVolumeAboveADirectoryOfPowerHasItsPower(t *testing.T) {
	p, err := NewPowers(DefaultPowerPipes(), []string{`C:\Windows`, `C:\etc\kubernetes`})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Power{
		`C:\`: PowerDirectory, `/`: PowerDirectory, `C:\etc`: PowerDirectory, `/etc/`: PowerDirectory, `C:\Windows`: PowerDirectory,
		`C:\data`: PowerNone, `C:\etc\other`: PowerNone, `/data`: PowerNone, `/mnt/disks/ssd0`: PowerNone, `D:\`: PowerNone, `\\fs\data`: PowerNone, `\\.\pipe\printer`: PowerNone,
		`\\fs`: PowerShare, `\\.\`: PowerDisk, `\\.\pipe`: PowerPipe,
	} {
		if got := p.JudgeAnyMount(path).Power; got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// What a value makes of a path is found before the value is known.
func FuzzNoValueOfAVariableHidesAPipe(f *testing.F) {
	values := []string{`\.\pipe\csi-proxy`, `/./pipe/csi-proxy`, `??\pipe\csi-proxy`, `pipe\csi-proxy`, `evice\namedpipe\csi-proxy`, `x\pipe\csi-proxy`, `. \??\pipe\x`}
	for _, hostPath := range append(seeds(f), `/`, `\`, `/d`, `/var`, `/.`, `/device`, `/device/mup`, ``) {
		for _, value := range values {
			f.Add(hostPath, ``, value, ``)
			f.Add(hostPath, `\.\`, value, `\x`)
		}
	}
	g := defaultGuard(f)
	f.Fuzz(func(t *testing.T, hostPath, before, value, after string) {
		if strings.Contains(before, "$") || strings.Contains(after, "$") || strings.Contains(value, "..") {
			return
		}
		written := before + value + after
		if strings.Contains(written, "..") && !strings.Contains(before+`\`+after, "..") {
			return // the value completes it
		}
		if static := g.JudgeMount(hostPath, written); static.Match && !g.JudgeMountExpr(hostPath, before+"$(X)"+after).Match {
			t.Fatalf("%+q with %+q$(X)%+q is admitted, with X=%+q %+v", hostPath, before, after, value, static)
		}
	})
}
