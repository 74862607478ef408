package query

import (
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Nobody hides a path from a search by spelling it otherwise, or by asking for more than a record holds.
func TestAPathIsFoundByAnySpelling(t *testing.T) {
	const directory = `C:\var\lib\kubelet`
	of := func(kind, value string) *audit.Event {
		return &audit.Event{What: &audit.What{Targets: []audit.Target{{Kind: kind, Value: value}}}}
	}
	for value, want := range map[string]bool{
		`c:/VAR/lib/kubelet/pods`:              true,
		`\\?\C:\var\lib\kubelet\pods`:          true,
		`\\.\C:\var\lib\kubelet`:               true,
		`\??\C:\var\lib\kubelet`:               true,
		`C:\\var\\lib\\kubelet\\pods`:          true,
		`C:\var\.\lib\x\..\kubelet\pods`:       true,
		`C:\..\var\lib\kubelet`:                true,
		`C:\var\lib\kubelet. \pods`:            true,
		`C:\var\lib\kubelet\..\..\..\windows`:  true, // as it was written
		`C:\var\li[900 bytes cut]`:             true, // it may be
		`C:\var\lib\kubelet\pods[9 bytes cut]`: true,
		`C:\var\lib\kubelet-evil`:              false,
		`C:\var\lib`:                           false,
		`C:\var\lib\other[9 bytes cut]`:        false,
		`\\?\D:\var\lib\kubelet`:               false,
		`\\server\var\lib\kubelet`:             false,
		``:                                     false,
		`..`:                                   false,
	} {
		for _, asked := range []string{directory, `c:/var/lib/kubelet/`, `\\?\C:\var\lib\kubelet`} {
			if got := touches(of("path", value), asked); got != want {
				t.Errorf("%s below %s: %t", value, asked, got)
			}
		}
	}
	if !touches(of("path", `\\?\UNC\server\share\x`), `\\server\share`) || !touches(of("cut", "[3 entries cut]"), directory) {
		t.Error("a share by its device, or a record without room for all targets, is not found")
	}
}

// Who asks for a pipe means the pods that were admitted with it, too.
func TestAPipeIsFoundByAnyOfItsNames(t *testing.T) {
	call := &audit.Event{What: &audit.What{Pipe: "csi-proxy-disk-v1"}}
	admission := &audit.Event{Type: audit.TypeAdmission, What: &audit.What{Targets: []audit.Target{
		{Kind: "pipe", Value: `//./pipe/CSI-proxy-smb-v1`, Canonical: `\\.\pipe\csi-proxy-smb-v1`}, {Kind: "pipe", Value: `\\.\pipe\csi-proxy-disk-v1`},
	}}}
	other := &audit.Event{What: &audit.What{Pipe: "csi-proxy-disk-v1beta1", Targets: []audit.Target{{Kind: "path", Value: `C:\disk-v1`}}}}
	for _, name := range []string{"csi-proxy-disk-v1", "disk-v1", "DISK-v1", `\\.\pipe\csi-proxy-disk-v1`} {
		var f Filter
		if err := f.Want("pipe", name, noon); err != nil {
			t.Fatal(err)
		}
		if !f.Match(call) || !f.Match(admission) || f.Match(other) || f.Match(&audit.Event{What: &audit.What{}}) {
			t.Errorf("%s: call %t, admission %t, other %t", name, f.Match(call), f.Match(admission), f.Match(other))
		}
	}
	tally, err := NewTally([]string{"pipe"})
	if err != nil {
		t.Fatal(err)
	}
	tally.Add(call)
	if g := tally.Groups(); len(g) != 1 || g[0].Values[0] != "csi-proxy-disk-v1" {
		t.Errorf("counted by %v", g)
	}
}
