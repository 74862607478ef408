package safepath

import (
	"slices"
	"strings"
	"testing"
)

func TestCanonicalRemovesSeparatorsBehindADriveAndNothingElse(t *testing.T) {
	for path, want := range map[string]string{
		`C:\var\lib\kubelet\plugins`:          `C:\var\lib\kubelet\plugins`,
		`C:\var\lib\\kubelet\plugins\`:        `C:\var\lib\kubelet\plugins`,
		`c:\\\VAR\\lib\\\`:                    `c:\VAR\lib`,
		`C:\\x`:                               `C:\x`,
		`C:\`:                                 `C:\`,
		`C:\\`:                                `C:\`,
		`C:`:                                  `C:`,
		`C:x\\y\`:                             `C:x\\y\`,
		`C:/x//y/`:                            `C:/x//y/`,
		`C:\x//y`:                             `C:\x//y`,
		`C:\x\\..\\y\.\`:                      `C:\x\..\y\.`,
		`C:\x. \\y :z\`:                       `C:\x. \y :z`,
		``:                                    ``,
		`\`:                                   `\`,
		`\\`:                                  `\\`,
		`\var\\lib\`:                          `\var\\lib\`,
		`\\server\\share\`:                    `\\server\\share\`,
		`\\?\C:\x\\y\`:                        `\\?\C:\x\\y\`,
		`\\.\C:\\x`:                           `\\.\C:\\x`,
		`\??\C:\\x`:                           `\??\C:\\x`,
		`1:\\x`:                               `1:\\x`,
		"C:\\\\\xff\\\\":                      "C:\\\xff",
		`C:\\` + strings.Repeat("x", 300):     `C:\\` + strings.Repeat("x", 300),
		`C:\x` + strings.Repeat(`\`, 300):     `C:\x` + strings.Repeat(`\`, 300),
		`C:\x` + strings.Repeat(`\`, 256):     `C:\x`,
		`C:` + strings.Repeat(`\`, 257) + `x`: `C:\x`,
	} {
		if got := Canonical(path); got != want {
			t.Errorf("%.60q: got %.60q, want %.60q", path, got, want)
		}
	}
}

// The oracle takes a path as Win32 does: what is behind the drive are names with any number of separators between them.
func FuzzCanonicalNamesTheSamePath(f *testing.F) {
	for _, s := range []string{
		"", `C:\`, `C:\\x`, `C:\\\x\\y\\`, kubelet + `\\plugins\`, `\\server\\share\`, `\\?\C:\\x`, `C:\\?\C:\x`, `C:\x\\..\\y`, `C:\x\\ \`, `C:x\\y`,
		`C:/\\x`, `C:\\.\pipe\x`, `C:\\UNC\server`, "C:\\\\\xff", "C:\\\\\x00\\", `é:\\x`, kubelet + strings.Repeat(`\`, 300),
	} {
		f.Add(s)
	}
	roots := testRoots(f)
	f.Fuzz(func(t *testing.T, path string) {
		canonical := Canonical(path)
		if Canonical(canonical) != canonical {
			t.Fatalf("%q becomes %q and then %q", path, canonical, Canonical(canonical))
		}
		if strings.ReplaceAll(canonical, `\`, "") != strings.ReplaceAll(path, `\`, "") {
			t.Fatalf("%q becomes %q, which has lost more than separators", path, canonical)
		}
		if canonical != path && (len(path) < 3 || path[1:3] != `:\`) {
			t.Fatalf("%q becomes %q, and is not a path on a drive", path, canonical)
		}
		names := func(s string) []string {
			return slices.DeleteFunc(strings.Split(s, `\`), func(name string) bool { return name == "" })
		}
		if !slices.Equal(names(path), names(canonical)) {
			t.Fatalf("%q becomes %q, which has other names", path, canonical)
		}
		drive, segments, err := Split(path)
		driveAfter, after, errAfter := Split(canonical)
		if drive != driveAfter || !slices.Equal(segments, after) || (err == nil) != (errAfter == nil) {
			t.Fatalf("%q is %q (%v), and as %q it is %q (%v)", path, segments, err, canonical, after, errAfter)
		}
		if err == nil && !slices.Equal(segments, names(path)[1:]) {
			t.Fatalf("%q has segments %q", path, segments)
		}
		before, err := roots.Check(path)
		within, errAfter := roots.Check(canonical)
		if before.String() != within.String() || (err == nil) != (errAfter == nil) {
			t.Fatalf("%q is %q (%v), and as %q it is %q (%v)", path, before, err, canonical, within, errAfter)
		}
	})
}
