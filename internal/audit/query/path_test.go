package query

import (
	"encoding/json"
	"errors"
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
		`c:/VAR/lib/kubelet/pods`:                               true,
		`\\?\C:\var\lib\kubelet\pods`:                           true,
		`\\.\C:\var\lib\kubelet`:                                true,
		`\??\C:\var\lib\kubelet`:                                true,
		`\DosDevices\C:\var\lib\kubelet`:                        true,
		`\GLOBAL??\C:\var\lib\kubelet\pods`:                     true,
		`\\?\GLOBALROOT\??\C:\var\lib\kubelet`:                  true,
		`//./Global/C:/var/lib/kubelet`:                         true,
		`\Sessions\0\DosDevices\0\C:\var\lib\kubelet`:           true,
		`\DosDevices\D:\var\lib\kubelet`:                        false,
		`C:\\var\\lib\\kubelet\\pods`:                           true,
		`C:\var\.\lib\x\..\kubelet\pods`:                        true,
		`C:\..\var\lib\kubelet`:                                 true,
		`C:\var\lib\kubelet. \pods`:                             true,
		`C:\var\lib\kubelet\..\..\..\windows`:                   true, // as it was written
		`C:\var\li[900 bytes cut]`:                              true, // it may be
		`C:\var\lib\kubelet\pods[9 bytes cut]`:                  true,
		`C:\$(X)/lib/kubelet`:                                   true, // as far as anybody knows
		`C:\va$(X)`:                                             true,
		`C:\var\lib\kubelet\$(X)`:                               true,
		`C:\data\$(X)`:                                          false,
		`C:\VAR~1\x`:                                            true,
		`C:\var\lib\KUBELE~2\pods`:                              true,
		`C:\var\log\KUBELE~2`:                                   false,
		`C:\x\q~1\..\..\var\lib\kubelet`:                        true,
		`C:\a\q~1\..\..\$(V)`:                                   true,
		`\va~1`:                                                 true,
		`\var\$(V)`:                                             true,
		`\data\$(V)`:                                            false,
		`C:\var\lib\kubelet::$INDEX_ALLOCATION\x`:               true,
		`C:\var\lib:$I30:$INDEX_ALLOCATION\kubelet`:             true,
		`\\localhost\c$\var\lib\kubelet\x`:                      true,
		`\\localhost\share\var\lib\kubelet`:                     false,
		`\\?\Volume{0-1}\var\lib\kubelet`:                       true,
		`\\?\GLOBALROOT\Device\HarddiskVolume3\var\lib\kubelet`: true,
		`\Device\HarddiskVolume3\var\lib\kubelet`:               true,
		`\Device\HarddiskVolume3\var\log`:                       false,
		`\var\lib\kubelet\pods`:                                 true, // of the drive that a process happens to be on
		`/var/lib/kubelet`:                                      true,
		`C:var\lib\kubelet`:                                     true,
		`\var\lib\kubelet-evil`:                                 false,
		`C:\var\lib\kubelet-evil`:                               false,
		`C:\var\lib`:                                            false,
		`\\?\D:\var\lib\kubelet`:                                false,
		`\\server\var\lib\kubelet`:                              false,
		``:                                                      false,
	} {
		for _, asked := range []string{directory, `c:/var/lib/kubelet/`, `\\?\C:\var\lib\kubelet`} {
			if got := touches(of("path", value), asked); got != fits(want) {
				t.Errorf("%s below %s: %d", value, asked, got)
			}
		}
	}
	gone := of("path", `C:\var\lib\other[99 bytes cut]`) // ..\ and more, perhaps
	known := of("path", `C:\var\lib\other[99 bytes cut]`)
	known.What.Targets[0].Canonical = `C:\var\other`
	if touches(gone, directory) != may || touches(known, directory) != none {
		t.Error("the cut end of a path may lead anywhere, unless it was understood")
	}
	for _, share := range []string{`\\?\UNC\server\share\x`, `\DosDevices\UNC\server\share`, `\Device\Mup\server\share\x`, `\\?\GLOBALROOT\Device\Mup\server\share`} {
		if touches(of("path", share), `\\server\share`) != all {
			t.Errorf("%s is not found by its share", share)
		}
	}
	if touches(of("path", `\\server\unc\x`), `\\server\unc`) != all || touches(of("cut", "[3 entries cut]"), directory) != may {
		t.Error("a share of the name of a device, or a record without room for all targets, is not found")
	}
}

// A path that may or may not lead to the directory is found, but not reported as lying there.
func TestAPathThatMayLieThereIsFound(t *testing.T) {
	for _, c := range []struct {
		kind, value, asked string
		want               fit
	}{
		{"path", `\\?\UNC\localhost\C$\Windows`, `C:\Windows`, all},
		{"path", `\\localhost\C$\\Windows\x`, `C:\Windows`, all},
		{"path", `\\.\HarddiskVolume3\Windows`, `C:\Windows`, all},
		{"path", `\\.\Global\HarddiskVolume3\Windows`, `C:\Windows`, all},
		{"path", `\\?\BootPartition\Windows`, `C:\Windows`, all},
		{"path", `\??\Volume{452e318a-5cde-421e-9831-b9853c521012}\Windows`, `C:\Windows`, all},
		{"path", `\??\Volume{452e318a-5cde-421e-9831-b9853c521012}\Users`, `C:\Windows`, none},
		{"path", `\\?\Volume{452e318a-5cde-421e-9831-b9853c521012}\`, `C:\Windows`, none},
		{"path", `\\?\Volume{452e318a-5cde-421e-9831-b9853c521012}`, `C:\Windows`, may},
		{"path", `\\.\BootPartition\Users`, `C:\Windows`, none},
		{"path", `\Device\HarddiskVolume3`, `C:\Windows`, may},
		{"path", `\\localhost\c$`, `C:\Windows`, may},
		{"path", `\\localhost\c$\`, `C:\Windows`, none},
		{"path", `\\.\C:`, `C:\Windows`, may},
		{"path", `\\.\C:\`, `C:\Windows`, none},
		{"path", `\\.\D:`, `C:\Windows`, none},
		{"path", `\\.\PhysicalDrive0`, `C:\Windows`, may},
		{"path", `\\.\link\x`, `C:\Windows`, may},
		{"path", `\Device\Link\x`, `C:\Windows`, may},
		{"path", `\\localhost\ADMIN$\System32`, `C:\Windows`, may},
		{"path", `\\?\GLOBALROOT\SystemRoot\System32`, `C:\Windows`, may},
		{"path", `\SystemRoot\System32`, `C:\Windows`, may},
		{"path", `\SystemRootX\System32`, `C:\Windows`, none},
		{"path", `Windows`, `C:\Windows`, may},
		{"path", `%SystemRoot%`, `C:\Windows`, may},
		{"path", `..`, `C:\Windows`, may},
		{"path", `C:x`, `C:\Windows`, may},
		{"path", `D:x`, `C:\Windows`, none},
		{"path", `Windows`, `\\files\s`, none},
		{"path", `\\files\s`, `\\files\s\sub`, none},
		{"share", `\\files\s`, `\\files\s\sub`, may},
		{"share", `\\files\s`, `\\files\s`, all},
		{"share", `\\files\s`, `\\files\s2`, none},
		{"share", `\\files\s`, `C:\Windows`, none},
		{"share", `\\localhost\c$`, `\\localhost\C$\Windows`, may},
		{"share", `\\localhost\c$`, `C:\Windows`, may},
		{"share", `\\localhost\admin$`, `C:\Windows`, may},
		{"pipe", `\\.\pipe\x`, `C:\Windows`, none},
		{"dos-device", `\\.\link`, `C:\Windows`, may},
		{"malformed", `\\.\a\..\b?`, `C:\Windows`, may},
		{"service", `Windows`, `C:\Windows`, none},
		{"disk", `0`, `C:\Windows`, none},
		{"volume", `\\?\Volume{452e318a-5cde-421e-9831-b9853c521012}\`, `C:\Windows`, none},
	} {
		e := &audit.Event{What: &audit.What{Targets: []audit.Target{{Kind: c.kind, Value: c.value}}}}
		if got := touches(e, c.asked); got != c.want {
			t.Errorf("%s %s below %s: %d, want %d", c.kind, c.value, c.asked, got, c.want)
		}
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

func touches(e *audit.Event, path string) fit {
	var f Filter
	if err := f.Want("path", path, noon); err != nil {
		panic(err)
	}
	return f.fields[0].any[0](e)
}

// A record that does not name all that its requests named is not left out for it, and does not count as one that has what was asked for either.
func TestWhatARecordDoesNotSayIsNeitherDeniedNorClaimed(t *testing.T) {
	of := func(stage audit.Stage, result string, count uint64, more int, paths ...string) *audit.Event {
		e := &audit.Event{Type: audit.TypeRequest, Stage: stage, Time: noon, What: &audit.What{Method: "Mkdir", MoreTargets: more}, Outcome: &audit.Outcome{Result: result, Count: count}}
		for _, p := range paths {
			e.What.Targets = append(e.What.Targets, audit.Target{Kind: "path", Value: p})
		}
		if result == audit.ResultDenied {
			e.Decision = &audit.Decision{Effect: audit.EffectDeny}
		}
		return e
	}
	unread := of(audit.StageSummary, audit.ResultRejected, 438, 0)
	unread.What = nil
	read := of(audit.StageResponseComplete, audit.ResultRejected, 0, 0)
	read.What.Params = []byte(`{}`)
	for name, c := range map[string]struct {
		e               *audit.Event
		isFound, isLeft bool   // by path=C:\a, and by path!=C:\a
		doubt           uint64 // of what is found
	}{
		"named among others, and more":    {of(audit.StageSummary, audit.ResultDenied, 655, 149, `C:\a\b`, `C:\c`), true, true, 655},
		"named among others":              {of(audit.StageSummary, audit.ResultDenied, 655, 0, `C:\a\b`, `C:\c`), true, true, 655},
		"all that is named":               {of(audit.StageSummary, audit.ResultDenied, 655, 0, `C:\a\b`, `C:\a\c`), true, false, 0},
		"one of what has no room":         {of(audit.StageSummary, audit.ResultDenied, 221, 205, `C:\c`), true, true, 221},
		"others":                          {of(audit.StageSummary, audit.ResultDenied, 221, 0, `C:\c`), false, true, 0},
		"nothing, by a rule":              {of(audit.StageSummary, audit.ResultDenied, 221, 0), false, true, 0},
		"refused before they were read":   {unread, true, true, 438},
		"one, before it was read":         {of(audit.StageResponseComplete, audit.ResultRejected, 0, 0), true, true, 1},
		"one that was read, and rejected": {read, false, true, 0},
		"one":                             {of(audit.StageResponseComplete, audit.ResultDenied, 0, 0, `C:\a`), true, false, 0},
	} {
		for _, key := range []string{"path", "target"} {
			value := map[string]string{"path": `C:\a`, "target": `C:\a*`}[key]
			var want, not Filter
			if err := errors.Join(want.Want(key, value, noon), not.Exclude(key, value)); err != nil {
				t.Fatal(err)
			}
			if want.Match(c.e) != c.isFound || not.Match(c.e) != c.isLeft {
				t.Errorf("%s, %s: found, or left by its opposite, otherwise than wanted", key, name)
			}
			if (len(want.Unseen()) == 0) != c.isFound || (len(not.Doubts()) != 0) != (c.isLeft && c.doubt != 0) {
				t.Errorf("%s, %s: unseen %v", key, name, want.Unseen())
			}
			var count uint64
			for _, d := range want.Doubts() {
				count += d.Count
			}
			if count != c.doubt {
				t.Errorf("%s, %s: %d in doubt, want %d", key, name, count, c.doubt)
			}
		}
	}
}

// A record that has no room for all pipes of an object may be about any: no search by pipe leaves it out.
func TestAnAdmissionWithMorePipesThanItNamesIsFoundByAny(t *testing.T) {
	of := func(more int, targets ...audit.Target) *audit.Event {
		return &audit.Event{Type: audit.TypeAdmission, Time: noon, What: &audit.What{Targets: targets, MoreTargets: more}}
	}
	disk := audit.Target{Kind: "pipe", Value: `\\.\pipe\csi-proxy-disk-v1`, Canonical: `\\.\pipe\csi-proxy-disk-v1`}
	smb := audit.Target{Kind: "pipe", Value: `\\.\pipe\csi-proxy-smb-v1`, Canonical: `\\.\pipe\csi-proxy-smb-v1`}
	below := audit.Target{Kind: "pipe", Value: `//./pipe/CSI-proxy-disk-v1/x`, Canonical: `\\.\pipe\csi-proxy-disk-v1\x`}
	long := audit.Target{Kind: "pipe", Value: `\\.\pipe\xx[900 bytes cut]`, Canonical: `\\.\pipe\xx[900 bytes cut]`}
	call := &audit.Event{Type: audit.TypeRequest, Time: noon, What: &audit.What{Pipe: "csi-proxy-smb-v1", MoreTargets: 3}}
	unread := of(0)
	unread.Decision, unread.Outcome = &audit.Decision{Effect: audit.EffectDeny, Rule: "PG999"}, &audit.Outcome{Result: audit.ResultRejected}
	unread.What.Params = json.RawMessage(`{"kind":"Deployment","name":"x"}`)
	overload := of(0, smb)
	overload.Decision, overload.Outcome = unread.Decision, unread.Outcome
	for name, c := range map[string]struct {
		e               *audit.Event
		isFound, isLeft bool // by pipe=disk-v1, and by pipe!=disk-v1
		doubt           bool
	}{
		"named":                  {of(0, smb, disk), true, false, false},
		"named among more":       {of(9, smb, disk), true, false, false},
		"others":                 {of(0, smb), false, true, false},
		"others and more":        {of(9, smb), true, true, true},
		"others and a cut":       {of(0, smb, audit.Target{Kind: "cut", Value: "[8 entries cut]"}), true, true, true},
		"something below it":     {of(0, below), true, false, false},
		"a name without its end": {of(0, long), true, true, true},
		"a call to another pipe": {call, false, true, false},
		"nothing, unread":        {unread, true, true, true},
		"all pipes":              {of(0, audit.Target{Kind: "pipe-root", Value: `\\.\pipe\csi-proxy-disk-v1`, Canonical: `\\.\pipe`}), true, true, true},
		"a way back":             {of(0, audit.Target{Kind: "malformed-dotdot", Value: `\\.\pipe\x\..\csi-proxy-disk-v1`, Canonical: `\\.\pipe\x\..\csi-proxy-disk-v1`}), true, true, true},
		"a protected pipe":       {of(0, audit.Target{Kind: "pipe", Value: `\\.\pipe\ProtectedPrefix/Administrators\disk-v1`}), true, false, false},
		"below another pipe":     {of(0, audit.Target{Kind: "pipe", Value: `\\.\pipe\csi-proxy-smb-v1\disk-v1`}), false, true, false},
		"others, not judged":     {overload, false, true, false},
	} {
		var want, not Filter
		if err := errors.Join(want.Want("pipe", "disk-v1", noon), not.Exclude("pipe", "disk-v1")); err != nil {
			t.Fatal(err)
		}
		if want.Match(c.e) != c.isFound || not.Match(c.e) != c.isLeft {
			t.Errorf("%s: found, or left by its opposite, otherwise than wanted", name)
		}
		if (len(want.Doubts()) > 0) != c.doubt || (len(not.Doubts()) > 0) != c.doubt || (len(want.Unseen()) == 0) != c.isFound {
			t.Errorf("%s: in doubt %v and %v, unseen %v", name, want.Doubts(), not.Doubts(), want.Unseen())
		}
	}
	var path Filter
	if err := path.Want("path", `\\.\pipe\csi-proxy-disk-v1`, noon); err != nil {
		t.Fatal(err)
	}
	if host := of(0, audit.Target{Kind: "unc-host", Value: `\\localhost`, Canonical: `\\localhost`}); !path.Match(host) || len(path.Doubts()) != 1 {
		t.Error("what may lead to any pipe is not found by the path of one, as not known")
	}
	var without Filter
	if err := without.Want("pipe", "", noon); err != nil {
		t.Fatal(err)
	}
	if !without.Match(of(1, audit.Target{Kind: "path", Value: `C:\Windows`})) || without.Match(of(1, smb)) {
		t.Error("records without a pipe are found otherwise than wanted")
	}
	tally, err := NewTally([]string{"target"})
	if err != nil {
		t.Fatal(err)
	}
	tally.Add(of(9, disk, smb))
	if got := tally.Groups()[0].Values[0]; got != disk.Value {
		t.Errorf("counted as %q", got)
	}
}
