package safepath

import (
	"slices"
	"strings"
	"testing"
)

func FuzzCheckAcceptsNothingOutside(f *testing.F) {
	for _, s := range []string{
		"", kubelet, kubelet + `\`, kubelet + `\pods\x\volumes\kubernetes.io~csi\y\mount`, kubelet + `-evil\x`, `c:\VAR\LIB\KUBELET\x\`,
		kubelet + `\..\x`, kubelet + `\a..b`, kubelet + `\com1`, kubelet + `\a~1`, "C:\\var\\lib\\\u212aubelet\\x", kubelet + "\\\u0130\u0131\u017f",
		`D:\csi\work\x`, `D:\csi`, `\\?\C:\var`, `C:/var`, kubelet + `\\x`, kubelet + "\\\xff", kubelet + "\\\x00", kubelet + `\ x`, `C:\var\lib\kubelet\deep\er`,
	} {
		f.Add(s)
	}
	roots := testRoots(f, kubelet, `D:\csi\work`, kubelet+`\deep`)
	f.Fuzz(func(t *testing.T, path string) {
		p, err := roots.Check(path)
		if err != nil {
			if !p.IsZero() {
				t.Fatalf("%q is refused (%v) and is %q", path, err, p)
			}
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Fatalf("%q: the error has control characters: %q", path, err)
			}
			return
		}
		// Judged by other means than those of Check: text alone.
		s := p.String()
		if s != p.Root() && !strings.HasPrefix(s, p.Root()+`\`) || !slices.Contains(roots.Dirs(), p.Root()) {
			t.Fatalf("%q is accepted as %q with root %q", path, s, p.Root())
		}
		if strings.ContainsAny(s[3:], "/:*?\"<>|") || strings.Contains(s, `\\`) || len(s) > MaxLength {
			t.Fatalf("%q is accepted as %q", path, s)
		}
		for seg := range strings.SplitSeq(s[3:], `\`) {
			if strings.Trim(seg, ". ") == "" || strings.TrimRight(seg, ". ") != seg {
				t.Fatalf("%q is accepted with segment %q", path, seg)
			}
		}
		again, err := roots.Check(s)
		if err != nil || again.String() != s || again.Root() != p.Root() || !slices.Equal(again.Rel(), p.Rel()) {
			t.Fatalf("%q is accepted as %q, that is %q, %v", path, s, again, err)
		}
		folded, err := roots.Check(p.Fold())
		if err != nil || folded.Fold() != p.Fold() {
			t.Fatalf("%q has the key %q, that is %q, %v", path, p.Fold(), folded, err)
		}
	})
}
