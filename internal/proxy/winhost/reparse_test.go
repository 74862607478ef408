package winhost

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestEncodeSymlinkIsTheDocumentedBuffer(t *testing.T) {
	got, err := encodeSymlink(`C:\a`)
	if err != nil {
		t.Fatal(err)
	}
	want := "0c0000a0" + "2800" + "0000" + // tag, length, padding
		"0000" + "1000" + "1200" + "0800" + "00000000" + // names, and that they are absolute
		"5c003f003f005c00" + "43003a005c006100" + "0000" + // \??\C:\a
		"43003a005c006100" + "0000" // C:\a
	if hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
}

func TestALinkToAShareIsTheKernelsNameOfIt(t *testing.T) {
	for _, target := range []string{`\\server\share`, `\\server\share\Sub Dir\ä`} {
		got, err := encodeSymlink(target)
		if err != nil {
			t.Fatal(err)
		}
		if want := reparsePoint(tagSymlink, `\??\UNC`+target[1:], target); !strings.Contains(string(got), string(want[reparseHeader+reparseNames+reparseFlags:][:20])) {
			t.Errorf("%s is %x", target, got)
		}
		if back, err := decodeReparse(got); err != nil || back != target {
			t.Errorf("%s came back as %s, %v", target, back, err)
		}
	}
}

func TestEncodeSymlinkIsBounded(t *testing.T) {
	if b, err := encodeSymlink(`C:\` + strings.Repeat("a", 5000)); err == nil {
		t.Errorf("made %d bytes", len(b))
	}
}

// reparsePoint builds a buffer with two names that need not agree.
func reparsePoint(tag uint32, substitute, shown string) []byte {
	le := binary.LittleEndian
	a, b := utf16.Encode([]rune(substitute)), utf16.Encode([]rune(shown))
	buffer := le.AppendUint32(nil, tag)
	buffer = append(buffer, 0, 0, 0, 0)
	for _, n := range []int{0, 2 * len(a), 2 * len(a), 2 * len(b)} {
		buffer = le.AppendUint16(buffer, uint16(n))
	}
	if tag == tagSymlink {
		buffer = append(buffer, 0, 0, 0, 0)
	}
	for _, unit := range append(a, b...) {
		buffer = le.AppendUint16(buffer, unit)
	}
	return buffer
}

func TestDecodeReparseReadsWhatIsFollowedAndNotWhatIsShown(t *testing.T) {
	tests := []struct {
		name                    string
		tag                     uint32
		substitute, shown, want string
	}{
		{"a link to a path", tagSymlink, `\??\C:\a`, `C:\a`, `C:\a`},
		{"a link that shows another path", tagSymlink, `\??\C:\evil`, `C:\var\lib\kubelet\good`, `C:\evil`},
		{"a link that shows nothing", tagSymlink, `\??\C:\a`, ``, `C:\a`},
		{"a relative link", tagSymlink, `..\a`, `..\a`, `..\a`},
		{"a link to a share", tagSymlink, `\??\UNC\server\share\`, `\\server\share`, `\\server\share\`},
		{"a link to a share that shows a path", tagSymlink, `\??\UNC\server\share`, `C:\a`, `\\server\share`},
		{"a link to a device", tagSymlink, `\??\pipe\x`, ``, `\\?\pipe\x`},
		{"a mounted volume", tagMountPoint, `\??\Volume{01234567-89ab-cdef-0123-456789abcdef}\`, ``, `\\?\Volume{01234567-89ab-cdef-0123-456789abcdef}\`},
		{"a junction", tagMountPoint, `\??\C:\a`, `C:\a`, `C:\a`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := decodeReparse(reparsePoint(test.tag, test.substitute, test.shown))
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestDecodeReparseRefusesWhatIsMalformed(t *testing.T) {
	good := reparsePoint(tagSymlink, `\??\C:\a`, `C:\a`)
	poke := func(offset int, value uint16) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint16(b[offset:], value)
		return b
	}
	tests := map[string][]byte{
		"nothing":                         nil,
		"a header alone":                  good[:reparseHeader],
		"names without flags":             good[:reparseHeader+reparseNames+2],
		"a name that is cut off":          good[:reparseHeader+reparseNames+reparseFlags+4],
		"a name that starts past the end": poke(reparseHeader, 0xfff0),
		"a name that ends past the end":   poke(reparseHeader+2, 0xfff0),
		"both at their largest":           append(poke(reparseHeader, 0xffff)[:reparseHeader+2], append([]byte{0xfe, 0xff}, good[reparseHeader+4:]...)...),
		"half a character":                poke(reparseHeader+2, 3),
		"a tag of another kind":           reparsePoint(0x80000013, `\??\C:\a`, `C:\a`),
		"no tag":                          reparsePoint(0, `\??\C:\a`, `C:\a`),
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := decodeReparse(b); err == nil {
				t.Errorf("got %q", got)
			}
		})
	}
}

func FuzzDecodeReparse(f *testing.F) {
	f.Add(reparsePoint(tagSymlink, `\??\C:\a`, `C:\a`))
	f.Add(reparsePoint(tagMountPoint, `\??\Volume{x}\`, ``))
	f.Add([]byte{0x0c, 0, 0, 0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		path, err := decodeReparse(b)
		if err != nil && path != "" {
			t.Errorf("an error came with %q", path)
		}
	})
}

func FuzzSymlinkRoundTrip(f *testing.F) {
	f.Add(`C:\var\lib\kubelet\x`)
	f.Add(`D:\ä\𝄞`)
	f.Fuzz(func(t *testing.T, path string) {
		if len(path) < 3 || path[1] != ':' || path[2] != '\\' || strings.ToValidUTF8(path, "") != path {
			t.Skip("not a path that is ever linked to")
		}
		b, err := encodeSymlink(path)
		if err != nil {
			return
		}
		if got, err := decodeReparse(b); err != nil || got != path {
			t.Errorf("%q came back as %q, %v", path, got, err)
		}
	})
}

func TestCheckNameRefusesPaths(t *testing.T) {
	for _, name := range []string{"", ".", "..", `a\b`, "a/b", "a:b", "a\x00"} {
		if err := checkName(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	for _, name := range []string{"a", "...", "a.b", "a b", ".a", "CON"} {
		if err := checkName(name); err != nil {
			t.Error(err)
		}
	}
}
