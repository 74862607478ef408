package safepath

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const kubelet = `C:\var\lib\kubelet`

func testRoots(t testing.TB, dirs ...string) *Roots {
	t.Helper()
	if len(dirs) == 0 {
		dirs = []string{kubelet, `D:\csi\work`}
	}
	r, err := NewRoots(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckRefusesEveryAttack(t *testing.T) {
	long := kubelet + `\` + strings.Repeat("x", MaxLength)
	tests := []struct{ name, path, want string }{
		// Outside.
		{"a sibling with the root as its beginning", `C:\var\lib\kubelet-evil\x`, "is not within"},
		{"a sibling in another case", `C:\var\lib\KUBELETfoo`, "is not within"},
		{"the parent", `C:\var\lib`, "is not within"},
		{"the parent with a separator", `C:\var\lib\`, "is not within"},
		{"the drive", `C:\`, "is not within"},
		{"the system directory", `C:\Windows\System32\config\SAM`, "is not within"},
		{"the same directory on another drive", `D:\var\lib\kubelet\x`, "is not within"},
		{"the directory of another drive here", `C:\csi\work\x`, "is not within"},
		{"the root behind another directory", `C:\x\var\lib\kubelet\y`, "is not within"},
		{"the Kelvin sign for k", "C:\\var\\lib\\\u212aubelet\\x", "is not within"},
		{"the dotless i for i", "C:\\var\\l\u0131b\\kubelet\\x", "is not within"},
		{"the dotted capital I for i", "C:\\var\\l\u0130b\\kubelet\\x", "is not within"},
		{"a full-width letter", "C:\\var\\lib\\\uff4bubelet\\x", "is not within"},
		{"a zero-width space", "C:\\var\\lib\\kube\u200blet\\x", "is not within"},
		{"a combining mark", "C:\\var\\lib\\kubelet\u0301\\x", "is not within"},

		// Not absolute, or absolute in another way.
		{"nothing", ``, "not an absolute Windows path"},
		{"a drive alone", `C:`, "not an absolute Windows path"},
		{"relative to a drive", `C:var\lib\kubelet\x`, "not an absolute Windows path"},
		{"relative", `var\lib\kubelet\x`, "not an absolute Windows path"},
		{"a digit for a drive", `1:\var\lib\kubelet\x`, "not an absolute Windows path"},
		{"the Kelvin sign for a drive", "\u212a:\\var\\lib\\kubelet", "not an absolute Windows path"},
		{"a bracket, which is a letter but for a bit", `[:\var\lib\kubelet`, "not an absolute Windows path"},
		{"a space before the drive", ` C:\var\lib\kubelet\x`, "not an absolute Windows path"},
		{"a Linux path", `/var/lib/kubelet/x`, "not an absolute Windows path"},
		{"slashes behind the drive", `C:/var/lib/kubelet/x`, "not an absolute Windows path"},
		{"a file URL", `file:///C:/var/lib/kubelet/x`, "not an absolute Windows path"},
		{"rooted on the current drive", `\var\lib\kubelet\x`, `invalid character \ at beginning of path`},
		{"UNC", `\\localhost\C$\var\lib\kubelet\x`, `invalid character \ at beginning of path`},
		{"the long form", `\\?\C:\var\lib\kubelet\x`, `invalid character \ at beginning of path`},
		{"the device form", `\\.\C:\var\lib\kubelet\x`, `invalid character \ at beginning of path`},
		{"the NT form", `\??\C:\var\lib\kubelet\x`, `invalid character \ at beginning of path`},
		{"a volume", `\\?\Volume{0c1f2e3d-0000-0000-0000-100000000000}\x`, `invalid character \ at beginning of path`},
		{"a pipe", `\\.\pipe\csi-proxy-disk-v1`, `invalid character \ at beginning of path`},

		// What Win32 rewrites.
		{"dot-dot out of the root", kubelet + `\..\..\..\Windows`, `segment ".."`},
		{"dot-dot that stays inside", kubelet + `\a\..\b`, `segment ".."`},
		{"dot-dot at the end", kubelet + `\..`, `segment ".."`},
		{"dot-dot in the root's part", `C:\var\..\var\lib\kubelet\x`, `segment ".."`},
		{"dot-dot and a space", kubelet + `\.. \x`, "ends in a dot or a space"},
		{"three dots", kubelet + `\...\x`, "ends in a dot or a space"},
		{"a dot segment", kubelet + `\.\x`, `segment "."`},
		{"a dot at the root's end", `C:\var\lib\kubelet.`, "ends in a dot or a space"},
		{"a dot within the root", `C:\var.\lib\kubelet\x`, "ends in a dot or a space"},
		{"dots and spaces at the end", kubelet + `\trail. . .`, "ends in a dot or a space"},
		{"a space at the end", kubelet + `\x `, "ends in a dot or a space"},
		{"a segment of one space", kubelet + `\ \x`, "ends in a dot or a space"},
		{"slashes below the root", kubelet + `\a/b`, "U+002F"},
		{"dot-dot behind slashes", kubelet + `\a/../../b`, "U+002F"},
		{"dot-dot between doubled separators", kubelet + `\\..\\x`, `segment ".."`},
		{"a space between separators", kubelet + `\x\ \\`, "ends in a dot or a space"},
		{"a stream behind separators", kubelet + `\x\\:s`, "U+003A"},
		{"a device path behind a drive", `C:\\?\C:\var`, "U+003F"},
		{"a device behind separators", kubelet + `\\nul\\`, "is a device name"},
		{"a short name behind separators", `C:\var\\lib\\KUBELE~1`, "looks like a short name"},
		{"a share behind a drive", `C:\\localhost\C$\var\lib\kubelet\x`, "is not within"},
		{"a sibling behind separators", `C:\\var\\lib\\kubelet-evil`, "is not within"},
		{"nothing but separators", `C:\\\`, "is not within"},
		{"a separator between drive and colon", `C\:\var\lib\kubelet`, "not an absolute Windows path"},
		{"doubled slashes", kubelet + `\a//b`, "U+002F"},
		{"too long until it is collapsed", kubelet + strings.Repeat(`\`, MaxLength) + "x", "exceeds maximum characters: 260"},

		// Streams, wildcards, controls.
		{"a stream", kubelet + `\a:stream`, "U+003A"},
		{"the directory's own stream", kubelet + `::$INDEX_ALLOCATION`, "U+003A"},
		{"a second drive", kubelet + `\C:\Windows`, "U+003A"},
		{"a star", kubelet + `\*`, "U+002A"},
		{"a question mark", kubelet + `\a?`, "U+003F"},
		{"a quote", kubelet + `\a"b`, "U+0022"},
		{"a DOS star", kubelet + `\a<b`, "U+003C"},
		{"a DOS question mark", kubelet + `\a>b`, "U+003E"},
		{"a bar", kubelet + `\a|b`, "U+007C"},
		{"NUL", kubelet + "\\a\x00b", "U+0000"},
		{"a newline that forges a log line", kubelet + "\\a\nI0101 ok", "U+000A"},
		{"an escape", kubelet + "\\a\x1b[2J", "U+001B"},
		{"DEL", kubelet + "\\a\x7f", "U+007F"},
		{"a C1 control", kubelet + "\\a\u0085", "U+0085"},
		{"a line separator", kubelet + "\\a\u2028b", "U+2028"},
		{"right-to-left override", kubelet + "\\a\u202egpj.exe", "U+202E"},
		{"bytes that are not UTF-8", kubelet + "\\a\xff", "not UTF-8"},
		{"an overlong separator", kubelet + "\\a\xc1\x9cb", "not UTF-8"},
		{"an encoded surrogate", kubelet + "\\a\xed\xa0\x80", "not UTF-8"},

		// Devices.
		{"CON", kubelet + `\CON`, "is a device name"},
		{"a device in lower case", kubelet + `\nul`, "is a device name"},
		{"a device as a directory", kubelet + `\aux\x`, "is a device name"},
		{"a device with an extension", kubelet + `\prn.txt`, "is a device name"},
		{"a device with two extensions", kubelet + `\Nul.tar.gz`, "is a device name"},
		{"a device with a space before the extension", kubelet + `\con .txt`, "is a device name"},
		{"COM1", kubelet + `\COM1`, "is a device name"},
		{"COM0", kubelet + `\com0`, "is a device name"},
		{"LPT9 with an extension", kubelet + `\lpt9.log`, "is a device name"},
		{"COM with a superscript 1", kubelet + "\\COM\u00b9", "is a device name"},
		{"LPT with a superscript 2", kubelet + "\\lpt\u00b2.x", "is a device name"},
		{"LPT with a superscript 3", kubelet + "\\LPT\u00b3", "is a device name"},
		{"COM with an Arabic digit", kubelet + "\\com\u0663", "is a device name"},
		{"console input", kubelet + `\CONIN$`, "is a device name"},
		{"console output", kubelet + `\conout$`, "is a device name"},
		{"console input with a dotless i", kubelet + "\\con\u0131n$", "is a device name"},
		{"the clock", kubelet + `\CLOCK$`, "is a device name"},

		// Second names.
		{"a short name", kubelet + `\PLUGIN~1\x`, "looks like a short name"},
		{"a short name in the root's part", `C:\var\lib\KUBELE~1\x`, "looks like a short name"},
		{"a short name with an extension", kubelet + `\LONGNA~1.TXT`, "looks like a short name"},
		{"a short name with a hash", kubelet + `\LO1A2B~1`, "looks like a short name"},
		{"a short name with a large number", kubelet + `\LO~12345`, "looks like a short name"},
		{"a short name of nothing", kubelet + `\~1`, "looks like a short name"},

		// Length.
		{"too long", long, "exceeds maximum characters: 260"},
		{"one byte too long", long[:MaxLength+1], "path length 261 exceeds"},
		{"a megabyte", strings.Repeat(kubelet+`\`, 1<<20/19), "exceeds maximum characters: 260"},
	}
	r := testRoots(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := r.Check(tt.path)
			if err == nil {
				t.Fatalf("accepted as %q", p)
			}
			var refused *Error
			if !errors.As(err, &refused) || refused.Path != tt.path || !strings.Contains(refused.Reason, tt.want) {
				t.Errorf("error %#v, want a reason with %q", err, tt.want)
			}
			if refused.Outside != (tt.want == "is not within") {
				t.Errorf("Outside = %t", refused.Outside)
			}
			if !p.IsZero() || p.String() != "" {
				t.Errorf("a refused path is %q", p)
			}
		})
	}
}

func TestCheckKeepsTheRootAsConfiguredAndTheRestAsWritten(t *testing.T) {
	tests := []struct {
		name, path, root string
		rel              []string
		base             string
	}{
		{"the root itself", kubelet, kubelet, nil, "kubelet"},
		{"the root with a separator", kubelet + `\`, kubelet, nil, "kubelet"},
		{"another case in the root", `c:\VAR\Lib\kubeLET\Pods\X`, kubelet, []string{"Pods", "X"}, "X"},
		{
			"a pod's volume", kubelet + `\pods\0f5a\volumes\kubernetes.io~csi\pvc-1\mount`, kubelet,
			[]string{"pods", "0f5a", "volumes", "kubernetes.io~csi", "pvc-1", "mount"}, "mount",
		},
		{"a separator at the end", kubelet + `\plugins\`, kubelet, []string{"plugins"}, "plugins"},
		{"doubled separators", kubelet + `\\plugins\\\x`, kubelet, []string{"plugins", "x"}, "x"},
		{"doubled separators in the root's part", `C:\\var\lib\\kubelet\x`, kubelet, []string{"x"}, "x"},
		{"separators at the end", kubelet + `\x\\\`, kubelet, []string{"x"}, "x"},
		{"the root with separators", `C:\var\lib\\kubelet\\`, kubelet, nil, "kubelet"},
		{"dots inside names", kubelet + `\a..b\.hidden\c.d.e`, kubelet, []string{"a..b", ".hidden", "c.d.e"}, "c.d.e"},
		{"spaces inside and before names", kubelet + `\a b\ c`, kubelet, []string{"a b", " c"}, " c"},
		{"names that only begin like devices", kubelet + `\console\com10\nulls\lpt\com`, kubelet, []string{"console", "com10", "nulls", "lpt", "com"}, "com"},
		{"tildes that no short name has", kubelet + `\a~b\longer-name~1\x~1y\~\a~1.tar.gz\a~1.html`, kubelet, []string{"a~b", "longer-name~1", "x~1y", "~", "a~1.tar.gz", "a~1.html"}, "a~1.html"},
		{"letters of other scripts", kubelet + `\Größe\данные\資料`, kubelet, []string{"Größe", "данные", "資料"}, "資料"},
		{"the other root", `d:\CSI\work\x`, `D:\csi\work`, []string{"x"}, "x"},
		{"as long as may be", kubelet + `\` + strings.Repeat("x", MaxLength-len(kubelet)-1), kubelet, []string{strings.Repeat("x", MaxLength-len(kubelet)-1)}, strings.Repeat("x", MaxLength-len(kubelet)-1)},
	}
	r := testRoots(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := r.Check(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.rel, p.Rel()); diff != "" {
				t.Errorf("Rel: -want +got\n%s", diff)
			}
			want := strings.Join(append([]string{tt.root}, tt.rel...), `\`)
			if p.Root() != tt.root || p.Base() != tt.base || p.String() != want || p.IsZero() {
				t.Errorf("root %q, base %q, path %q", p.Root(), p.Base(), p)
			}
		})
	}
}

func TestCheckPrefersTheInnermostOfNestedRoots(t *testing.T) {
	r := testRoots(t, `C:\a`, `C:\a\b\c\`, `C:\a\b`)
	if diff := cmp.Diff([]string{`C:\a\b\c`, `C:\a\b`, `C:\a`}, r.Dirs()); diff != "" {
		t.Error(diff)
	}
	for path, root := range map[string]string{
		`C:\a\b\c\d`: `C:\a\b\c`, `C:\A\B\C`: `C:\a\b\c`, `C:\a\b\cd`: `C:\a\b`, `C:\a\b`: `C:\a\b`, `C:\a\bc`: `C:\a`,
	} {
		p, err := r.Check(path)
		if err != nil || p.Root() != root {
			t.Errorf("%s: root %q, %v; want %q", path, p.Root(), err, root)
		}
	}
}

func TestNewRootsRefusesWhatIsNoDirectoryOfItsOwn(t *testing.T) {
	tests := []struct {
		name string
		dirs []string
		want []string
	}{
		{"none", nil, []string{"no working directories"}},
		{"a whole drive", []string{`C:\`}, []string{`C:\ is a whole drive`}},
		{"slashes", []string{`C:/var/lib/kubelet`}, []string{"not an absolute Windows path"}},
		{"a Linux path", []string{`/var/lib/kubelet`}, []string{"not an absolute Windows path"}},
		{"a share", []string{`\\fs\kubelet`}, []string{`invalid character \`}},
		{"a short name", []string{`C:\PROGRA~1\kubelet`}, []string{"short name"}},
		{"every fault at once", []string{`D:\`, kubelet, `C:\x.`, ``}, []string{"whole drive", `"x." ends in a dot`, "not an absolute"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := NewRoots(tt.dirs...)
			if r != nil || err == nil {
				t.Fatalf("%v, %v", r, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: lacks %q", err, want)
				}
			}
		})
	}
}

func TestRelIsACopy(t *testing.T) {
	p, err := testRoots(t).Check(kubelet + `\a\b`)
	if err != nil {
		t.Fatal(err)
	}
	p.Rel()[0] = ".."
	if got, want := p.String(), kubelet+`\a\b`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestZeroPathNamesNothing(t *testing.T) {
	var p Path
	if !p.IsZero() || p.String() != "" || p.Root() != "" || p.Base() != "" || p.Fold() != "" || p.Rel() != nil {
		t.Errorf("%#v", p)
	}
}

func TestErrorCannotForgeALogLine(t *testing.T) {
	r := testRoots(t)
	tests := []struct{ name, path, want string }{
		{"outside", `C:\x`, `path: C:\x is not within context path: C:\var\lib\kubelet, D:\csi\work`},
		{"ill-formed", `x`, `not an absolute Windows path: x`},
		{"with a newline", "C:\\a\nb", `path contains invalid characters (U+000A): "C:\\a\nb"`},
		{"with a bidirectional control", "C:\\a\u202eb", `path contains invalid characters (U+202E): "C:\\a\u202eb"`},
		{"not UTF-8", "C:\\a\xff", `path contains invalid characters (not UTF-8): "C:\\a\xff"`},
		{"long", strings.Repeat("x", 1000), "path length 1000 exceeds maximum characters: 260: " + strings.Repeat("x", 520) + "… (1000 bytes)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Check(tt.path)
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
}
