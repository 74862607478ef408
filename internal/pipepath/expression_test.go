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
		{`/device/mup`, `$(X)`}, {`/device`, `mu$(X)`}, {`/device/vmsmb`, `x$(X)`}, {`/DosDevices`, `$(X)`}, {`/global`, `x\..\$(X)`},
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
		if got := p.JudgeMountExpr(m[0], m[1]); got != want {
			t.Errorf("%q with %q: %q, want %q", m[0], m[1], got, want)
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
