package pipepath

import (
	"strings"
	"testing"
	"time"
)

// BenchmarkPowers holds the paths that reviews are full of, and the longest that an API server stores.
func BenchmarkPowers(b *testing.B) {
	p := defaultPowers(b)
	for _, bb := range []struct{ name, path, subPath string }{
		{"drive", `C:\var\lib\kubelet`, ""},
		{"drive and subPath", `C:\var\lib\kubelet`, "plugins"},
		{"linux", "/var/lib/x", ""},
		{"driver pipe", `\\.\pipe\csi-proxy-filesystem-v1beta1`, ""},
		{"windows", `C:\Windows`, ""},
		{"disk", `\\.\PhysicalDrive0`, ""},
		{"evasive", "\\\\?\\GLOBALROOT\\??\\C:\\x\\.\\W\u0131ndow\u017f", ""},
		{"1 MiB", `C:\` + strings.Repeat(`x\..\`, 1<<20/5), ""},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.JudgeMount(bb.path, bb.subPath)
			}
		})
	}
}

func TestThePowerOfAnOrdinaryPathTakesTwoAllocationsAtMost(t *testing.T) {
	p := defaultPowers(t)
	for path, want := range map[string]float64{
		`C:\var\lib\kubelet`: 0, `c:/etc/x`: 1, "/var/lib/x": 1, `\\.\pipe\csi-proxy-filesystem-v1`: 0, `C:\Program Files\x`: 1, `//host/share`: 2,
	} {
		if n := testing.AllocsPerRun(100, func() { p.JudgeMount(path, "") }); n > want {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

// TestThePowerOfLongPathsTakesLinearTime gives each path of a eighth of a megabyte two seconds, as the test of Judge does.
func TestThePowerOfLongPathsTakesLinearTime(t *testing.T) {
	const size, limit = 1 << 17, 2 * time.Second
	p := defaultPowers(t)
	heads := []string{"", `\`, `C:\`, `C:`, `\\.\`, `\\host\`, `\\.\pipe\protectedprefix\`, `\device\`, `C:\Windows\`, "uvm:"}
	units := []string{`\`, `.\`, ` \`, `..\`, `x\..\`, `~\`, `x~1\`, `:\`, "\u212a", "\xff", `a\`, `windows\`, `disk`, `dis`}
	for _, head := range heads {
		for _, unit := range units {
			long := head + strings.Repeat(unit, size/len(unit))
			before := cpu()
			p.JudgeMount(long, long)
			if took := cpu() - before; took > limit {
				t.Errorf("%q and %q again and again: %v", head, unit, took)
			}
		}
	}
}
