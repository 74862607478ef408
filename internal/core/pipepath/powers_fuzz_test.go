package pipepath

import (
	"math/rand/v2"
	"testing"
)

// powerSeeds are paths of every power and of none.
func powerSeeds(f *testing.F) []string {
	return append(seeds(f), `C:\`, `C:\Windows`, `/windows`, `C:\x\..\Windows`, `C:\WINDOW~1`, `C:\Windows::$INDEX_ALLOCATION`, `\\.\PhysicalDrive0`, `\\?\Volume{0}\`,
		`\\?\GLOBALROOT\Device\Harddisk0\Partition1`, `\\host\c$\x`, `\\?\UNC\.\C$\x`, `C:drivers`, `D:\x`, `C:\x\...\y`, "C:\\\xff", `\GLOBAL??\C:`, `\\.\C:`, `uvm://C:\Windows`,
		`\\.\pipe\ProtectedPrefix\Administrators\containerd-shim-x`, "\u212a:\\x", "/\u212a:/x")
}

func FuzzRespellingNeverHidesAPower(f *testing.F) {
	for i, path := range powerSeeds(f) {
		for seed := range uint64(8) {
			f.Add(path, seed+uint64(i))
		}
	}
	p := defaultPowers(f)
	f.Fuzz(func(t *testing.T, path string, seed uint64) {
		power := p.JudgeMount(path, "").Power
		if power == PowerNone {
			return
		}
		other := respell(path, rand.New(rand.NewPCG(seed, 0)))
		if got := p.JudgeMount(other, "").Power; got == PowerNone {
			t.Fatalf("%+q has the power %q, %+q none", path, power, other)
		}
	})
}

// A canonical text that is a device path or a pipe keeps its power; one of another kind may be read as a path on C:.
func FuzzTheCanonicalFormHasThePower(f *testing.F) {
	for _, path := range powerSeeds(f) {
		f.Add(path)
	}
	p := defaultPowers(f)
	f.Fuzz(func(t *testing.T, path string) {
		name := Canonical(path)
		if name.Kind == KindDrive || name.Kind == KindNTDevice || name.Kind == KindNTOther || name.Canonical == `\device` {
			return // see Canonical
		}
		if got, want := p.JudgeMount(name.Canonical, "").Power, p.JudgeMount(path, "").Power; got != want {
			t.Fatalf("%+q has the power %q, its canonical form %+q %q", path, want, name.Canonical, got)
		}
	})
}

func FuzzASubPathNeverTakesPowerAway(f *testing.F) {
	for _, path := range powerSeeds(f) {
		f.Add(path, "x")
		f.Add(`C:\x`, path)
	}
	p := defaultPowers(f)
	f.Fuzz(func(t *testing.T, hostPath, subPath string) {
		volume, got := p.JudgeMount(hostPath, "").Power, p.JudgeMount(hostPath, subPath).Power
		if volume != PowerNone && got != volume {
			t.Fatalf("%+q has the power %q, with %+q %q", hostPath, volume, subPath, got)
		}
		switch got {
		case PowerNone, PowerPipe, PowerDirectory, PowerDisk, PowerShare:
		default:
			t.Fatalf("%+q and %+q: unknown power %q", hostPath, subPath, got)
		}
	})
}
