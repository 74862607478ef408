package pipepath

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
)

// seeds are the vectors' paths and some that only a careful reader would write.
func seeds(f *testing.F) []string {
	paths := []string{
		`\\.\C:`, `\\?\GLOBALROOT\Global??\GLOBALROOT\Device\Mup\;x\host\ipc$\pipe\LOCAL\csi-proxy`, `\\?\UNC\.\pipe\csi-proxy`,
		`\device\namedpipe\csi-proxy`, `\\device\namedpipe\csi-proxy`, `\.\??\pipe\csi-proxy`, `\. \. \device\mup\.\pipe\csi-proxy`, `\??.\x\..\pipe`, `\a\..\??\pipe\csi-proxy`,
		`\\. \globalroot\device\namedpipe\csi-proxy`, `\\ \unc\x\pipe\csi-proxy`, `npipe:////./pipe/csi-proxy`, `npipe:`, `\\.\x\..`,
		"\\\\.\\p\u0131pe\\c\u017f\u0131-proxy", "\\\\.\\pipe\\\xff", "\\\\\u202e", `\\?\unc\?\x`, `\\;x\pipe\csi-proxy`, `\\?\globalroot\ \device\x`,
		`\Device\Mup\Device\vmsmb\host\share\x`, `\\?\UNC\Global??\UNC\DosDevices\C:\x`, `\??\UNC\Sessions\1\DosDevices\C:\x`, `\\;x\Device\Mup\??\C:\x`, `\Device\LanmanRedirector\Device\Mup\x\pipe\y`,
	}
	for _, v := range vectors(f) {
		paths = append(paths, v.HostPath)
	}
	return paths
}

func FuzzCanonicalIsStable(f *testing.F) {
	for _, p := range seeds(f) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, path string) {
		first := Canonical(path)
		again := Canonical(first.Canonical)
		if again.Canonical != first.Canonical {
			t.Fatalf("%+q -> %+q -> %+q", path, first.Canonical, again.Canonical)
		}
		want := first.Kind
		switch {
		case want == KindNTOther && again.Kind == KindNTOther: // of a session or a silo
		case want == KindDrive, want == KindNTDevice, want == KindNTOther, first.Canonical == `\device`:
			want = KindPath // the text is a drive's, or has one leading separator
		}
		if again.Kind != want || again.Pipe != first.Pipe {
			t.Fatalf("%+q is %+v, its canonical form is %+v", path, first, again)
		}
		if first.Kind == KindPipe && first.Canonical != `\\.\pipe\`+first.Pipe || (first.Pipe != "") != (first.Kind == KindPipe) {
			t.Fatalf("%+q: %+v", path, first)
		}
		if first.Kind == KindPath && first.Canonical != path {
			t.Fatalf("%+q is a path and was changed to %+q", path, first.Canonical)
		}
	})
}

func FuzzRespellingNeverHidesAMatch(f *testing.F) {
	for i, p := range seeds(f) {
		for seed := range uint64(8) {
			f.Add(p, seed+uint64(i))
		}
	}
	g := defaultGuard(f)
	f.Fuzz(func(t *testing.T, path string, seed uint64) {
		if !g.Judge(path).Match {
			return
		}
		other := respell(path, rand.New(rand.NewPCG(seed, 0)))
		if v := g.Judge(other); !v.Match {
			t.Fatalf("%+q matches, %+q is %+v", path, other, v)
		}
	})
}

// respell changes case, the direction and number of separators, and adds dots to the ends of segments.
func respell(path string, r *rand.Rand) string {
	var b strings.Builder
	change := func() bool { return r.IntN(4) == 0 }
	dot := func() {
		s := b.String()
		if rest, scheme := cutScheme(s); scheme && rest == "" {
			return // a scheme is no segment: a dot behind it would be a marker
		}
		last := s[strings.LastIndexAny(s, `\/`)+1:]
		if strings.Trim(last, ". ") != "" && change() { // a dot more makes another segment of one that is made of dots
			b.WriteString(strings.Repeat(".", 1+r.IntN(2)))
		}
	}
	for i, c := range path {
		if c == unicode.ReplacementChar {
			b.WriteByte(path[i]) // keep bytes that are not UTF-8 (or the first of U+FFFD, which is such a byte)
			continue
		}
		if c != '\\' && c != '/' {
			if change() {
				c = unicode.To(r.IntN(unicode.MaxCase), c)
			}
			b.WriteRune(c)
			continue
		}
		dot()
		for range 1 + r.IntN(5)/4 {
			b.WriteByte(`\/`[r.IntN(2)])
		}
	}
	dot()
	return b.String()
}

func FuzzJudgeMountIsNeverWeakerThanItsParts(f *testing.F) {
	for _, p := range seeds(f) {
		f.Add(p, "x")
		f.Add(`\`, p)
		f.Add(`\\fs\data`, p)
	}
	g := defaultGuard(f)
	f.Fuzz(func(t *testing.T, hostPath, subPath string) {
		got := g.JudgeMount(hostPath, subPath)
		volume := g.Judge(hostPath)
		joined := g.Judge(hostPath + `\` + subPath)
		if volume.Match && got != volume {
			t.Fatalf("%+q: %+v, mounted with %+q %+v", hostPath, volume, subPath, got)
		}
		// A separator that is not needed may make a host of a directory: "/" and "var".
		if joined.Match && !got.Match && !strings.HasSuffix(hostPath, `\`) && !strings.HasSuffix(hostPath, "/") && hostPath != "" && subPath != "" {
			t.Fatalf("%+q and %+q: %+v, joined %+v", hostPath, subPath, got, joined)
		}
		if got.NeverAllowed != got.Kind.NeverAllowed() || got.NeverAllowed && !got.Match || got.SubPath && !got.Match {
			t.Fatalf("%+q and %+q: %+v", hostPath, subPath, got)
		}
	})
}
