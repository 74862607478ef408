package pipepath

import (
	"strings"
	"testing"
	"time"
)

// BenchmarkJudge holds the paths that reviews are full of, and the longest that an API server stores.
func BenchmarkJudge(b *testing.B) {
	g := defaultGuard(b)
	for _, bb := range []struct{ name, path string }{
		{"drive", `C:\var\lib\kubelet`},
		{"linux", "/var/lib/x"},
		{"linux beginning with d", "/data/x"},
		{"driver pipe", `\\.\pipe\csi-proxy-filesystem-v1beta1`},
		{"driver pipe as the client dials it", `\\.\\pipe\\csi-proxy-filesystem-v1beta1`},
		{"evasive", `\\?\GLOBALROOT\Device\Mup\;LanmanRedirector\localhost\IPC$\pipe\LOCAL\csi-proxy-disk-v1`},
		{"not ASCII", "\\\\.\\p\u0131pe\\c\u017f\u0131-proxy-d\u0131\u017f\u212a-v1"},
		{"1 MiB", `\\.\` + strings.Repeat(`global\`, 1<<20/7) + "pipe"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bb.path)))
			for b.Loop() {
				g.Judge(bb.path)
			}
		})
	}
}

func TestJudgeOfAnOrdinaryPathAllocatesNothing(t *testing.T) {
	g := defaultGuard(t)
	for _, path := range []string{`C:\var\lib\kubelet`, `c:/etc/x`, "/var/lib/x", "/run/csi-proxy.sock", `\\.\pipe\csi-proxy-filesystem-v1`, `\\.\pipe\rancher_wins`} {
		if n := testing.AllocsPerRun(100, func() { g.Judge(path) }); n != 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

// TestJudgeOfLongPathsTakesLinearTime gives each path of a quarter megabyte two seconds. Linear work needs
// milliseconds; work that grows with the square of a hundred thousand segments needs far longer.
func TestJudgeOfLongPathsTakesLinearTime(t *testing.T) {
	const size, limit = 1 << 18, 2 * time.Second
	g := defaultGuard(t)
	heads := []string{"", `\`, `\\.\`, `\\?\globalroot\device\mup\`, `\\.\pipe\`, "npipe:", `\\?\unc\.\`}
	units := []string{`\`, `.\`, ` \`, `global\`, `globalroot\??\`, `;x\`, `local\`, `..\`, `pipe\`, "\u212a", "\xff", "npipe:", `a\`}
	for _, head := range heads {
		for _, unit := range units {
			long := head + strings.Repeat(unit, size/len(unit))
			before := cpu()
			g.JudgeMount(long, long)
			if took := cpu() - before; took > limit { // a busy machine can keep the process from running for seconds
				t.Errorf("%q and %q again and again: %v", head, unit, took)
			}
		}
	}
}
