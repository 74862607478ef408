package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

func utf16LE(s string) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

func inJSON(escapeHTML bool) func(string) string {
	return func(s string) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escapeHTML)
		_ = e.Encode(s)
		return strings.TrimSuffix(b.String(), "\n")
	}
}

// encoders are how programs print a text. None of them is of this package.
var encoders = withBase64(map[string]func(string) string{
	"as it is":           func(s string) string { return s },
	"capitals":           strings.ToUpper,
	"small letters":      strings.ToLower,
	"quoted":             strconv.Quote,
	"quoted in ASCII":    strconv.QuoteToASCII,
	"quoted twice":       func(s string) string { return strconv.Quote(strconv.Quote(s)) },
	"quoted three times": func(s string) string { return strconv.Quote(strconv.QuoteToASCII(strconv.Quote(s))) },
	"JSON":               inJSON(false),
	"JSON for HTML":      inJSON(true),
	"JSON in JSON":       func(s string) string { return inJSON(true)(inJSON(true)(s)) },
	"JSON, all escaped": func(s string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(s)) {
			fmt.Fprintf(&b, `\u%04X`, u)
		}
		return b.String()
	},
	"bytes escaped in hex": func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
		return b.String()
	},
	"bytes escaped in octal": func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\%03o`, c)
		}
		return b.String()
	},
	"a query":            url.QueryEscape,
	"a path":             url.PathEscape,
	"a query in a query": func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"percent, all": func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, "%%%02x", c)
		}
		return b.String()
	},
	"HTML":         html.EscapeString,
	"HTML in HTML": func(s string) string { return html.EscapeString(html.EscapeString(s)) },
	"XML": func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s))
		return b.String()
	},
	"CLIXML": func(s string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(s)) {
			fmt.Fprintf(&b, "_x%04X_", u)
		}
		return b.String()
	},
	"PowerShell, single quotes": func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" },
	"PowerShell, double quotes": func(s string) string {
		return `"` + strings.NewReplacer("`", "``", `"`, "`\"", "$", "`$", "\n", "`n").Replace(s) + `"`
	},
	"PowerShell, doubled":       func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` },
	"hex":                       func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":                       func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hex with blanks":           func(s string) string { return fmt.Sprintf("% x", s) },
	"hex with marks":            func(s string) string { return fmt.Sprintf("% #X", s) },
	"bytes in Go":               func(s string) string { return fmt.Sprintf("%#v", []byte(s)) },
	"bytes in decimal":          func(s string) string { return fmt.Sprintf("%d", []byte(s)) },
	"bytes in a list":           func(s string) string { return strings.ReplaceAll(fmt.Sprintf("%d", []byte(s)), " ", ", ") },
	"hex of UTF-16":             func(s string) string { return fmt.Sprintf("%x", utf16LE(s)) },
	"UTF-16":                    utf16LE,
	"UTF-16 that became UTF-8":  func(s string) string { return strings.ToValidUTF8(utf16LE(s), "\ufffd") },
	"UTF-16, quoted":            func(s string) string { return strconv.Quote(utf16LE(s)) },
	"UTF-16 in JSON":            func(s string) string { return inJSON(true)(utf16LE(s)) },
	"base64 of UTF-16":          func(s string) string { return base64.StdEncoding.EncodeToString([]byte(utf16LE(s))) },
	"base64 of a UTF-16 script": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(utf16LE("$p = '" + s + "'"))) },
	"read as Latin-1": func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			b.WriteRune(rune(c))
		}
		return b.String()
	},
	"base64 with line ends": func(s string) string {
		encoded := base64.StdEncoding.EncodeToString([]byte(s))
		return encoded[:3] + "\r\n" + encoded[3:]
	},
})

// withBase64 adds base64 behind 0 to 5 bytes.
func withBase64(all map[string]func(string) string) map[string]func(string) string {
	for before := range 6 {
		for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding, "raw url": base64.RawURLEncoding} {
			encode := func(s string) string { return e.EncodeToString([]byte("user:x"[6-before:] + s + "\x00tail")) }
			all[fmt.Sprintf("base64 %s behind %d", name, before)] = encode
			all[fmt.Sprintf("base64 %s behind %d, in a query", name, before)] = func(s string) string { return url.QueryEscape(encode(s)) }
		}
	}
	return all
}

var canaries = []string{
	"p4ss-w0rd", `q"uo'te\s\\`, "line\nend\r\ttab", "grün-日本-😀1", "<a>&b;\"c'$d`e", "100%+ /?#=_-~", "\x00\x01\u200b\u2028x", `\\srv\share$`, "’‘“”„quotes", "&amp;&lt;1",
	strings.Repeat(`\`, 12) + "1", "aaaaaaaaaaaaaaa1", "[secret]-[secret]",
}

func TestASecretIsTakenOutHoweverItIsWritten(t *testing.T) {
	for _, canary := range canaries {
		v, written := New(canary), map[string]string{}
		for name, encode := range encoders {
			written[name] = encode(canary)
		}
		for name, encoded := range written {
			for _, around := range [][2]string{{"", ""}, {"map \"", "\": access is denied"}, {"x=", "&y=1"}, {"\\", "\\"}, {"ü: ", " ü"}} {
				text := around[0] + encoded + around[1]
				got := v.Scrub(text, "")
				if !strings.Contains(got, Mark) && got != Withheld {
					t.Errorf("%q, %s: %q became %q", canary, name, text, got)
				}
				for other, hit := range written {
					if strings.Contains(got, hit) && !strings.Contains(Mark, hit) {
						t.Errorf("%q, %s: %q is still there, %s", canary, name, got, other)
					}
				}
			}
		}
	}
}

func TestWhatIsRoundASecretStays(t *testing.T) {
	tests := []struct{ secret, text, want string }{
		{"p4ss-w0rd", `map \\srv\s: p4ss-w0rd is wrong (0x56)`, `map \\srv\s: [secret] is wrong (0x56)`},
		{"p4ss-w0rd", "p4ss-w0rdp4ss-w0rd, P4SS-W0RD.", "[secret], [secret]."},
		{"p4ss-w0rd", "Basic dTpwNHNzLXcwcmQ= is refused", "Basic [secret] is refused"}, // u:p4ss-w0rd
		{"p4ss-w0rd", "nothing of it: p4ss-w0r, 4ss-w0rd", "nothing of it: p4ss-w0r, 4ss-w0rd"},
		{"a\nb-cdefgh", `"a\nb-cdefgh"`, `"[secret]"`},
		{"", "an empty secret is none", "an empty secret is none"},
		{"p4ss-w0rd", "", ""},
	}
	for _, tt := range tests {
		if got := New(tt.secret).Scrub(tt.text, ""); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestATextThatWouldGiveASecretAwayIsWithheld(t *testing.T) {
	tests := []struct{ name, secret, text, shown, want string }{
		{"one character, which is in the text", "a", "access is denied", "", Withheld},
		{"one character, which is not: that would tell too", "q", "access is denied", "", Withheld},
		{"three characters", "q9-", "access is denied", "", Withheld},
		{"no text", "q9-", "", "", ""},
		{"four characters that are in the text", "q9-x", "q9-x is wrong", "", Withheld},
		{"four that are not", "q9-x", "access is denied", "", "access is denied"},
		{"a word of the text", "unreachable", "the server is unreachable", "", Withheld},
		{"a number of the text", "2147942487", "code 2147942487", "", Withheld},
		{"a word that is not there", "unreachable", "access is denied", "", "access is denied"},
		{"what stands in the request too", "svc-user-1", "svc-user-1 is unknown", `{"username":"SVC-user-1"}`, Withheld},
		{"what stands in the request and not in the text", "svc-user-1", "access is denied", `{"username":"svc-user-1"}`, "access is denied"},
		{"a very long text", "p4ss-w0rd", strings.Repeat("x", maxText+1), "", Withheld},
		{"a text of which what is left is the secret again", "x" + Mark + "y", "xx" + Mark + "yy", "", Withheld},
		{"the mark itself", Mark, "it says [secret]", "", Withheld},
	}
	for _, tt := range tests {
		if got := New(tt.secret).Scrub(tt.text, tt.shown); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

func TestSeveralSecretsAreAllTakenOut(t *testing.T) {
	v := New("p4ss-w0rd", "", "0ther-w0rd", "p4ss-w0rd", "p4ss-w0rd-longer")
	if got := v.Scrub("p4ss-w0rd-longer, 0ther-w0rd, p4ss-w0rd", ""); got != "[secret], [secret], [secret]" {
		t.Errorf("%q", got)
	}
	if got := New("p4ss-w0rd", "ab").Scrub("nothing", ""); got != Withheld {
		t.Errorf("one of two is short: %q", got)
	}
	if New() != nil || New("", "") != nil {
		t.Error("no secret is a secret")
	}
}

func TestWithoutASecretNothingIsLookedAt(t *testing.T) {
	var v *Values
	if got := v.Scrub("a text", "{}"); got != "a text" {
		t.Errorf("%q", got)
	}
	if n := testing.AllocsPerRun(100, func() { _ = New().Scrub("a text", "") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Backslashes that may or may not be doubled must not make a search of all their combinations.
func TestASecretOfBackslashesEnds(t *testing.T) {
	v := New(strings.Repeat(`\`, 256))
	if got := v.Scrub(strings.Repeat(`\`, 4000)+"x", ""); strings.Contains(got, `\`) {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestRandomSecretsInRandomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const alphabet = "ab0 \"'\\%&+/=_-`$<>\n\x00ü日😀"
	runes := []rune(alphabet)
	random := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune(runes[r.IntN(len(runes))])
		}
		return b.String()
	}
	for range 200 {
		value := random(minUnlike + r.IntN(12))
		v := New(value)
		for name, encode := range encoders {
			if r.IntN(10) > 0 {
				continue
			}
			text := random(r.IntN(6)) + encode(value) + random(r.IntN(6))
			got := v.Scrub(text, "")
			if got == text || strings.Contains(got, value) {
				t.Fatalf("%q, %s: %q became %q", value, name, text, got)
			}
			if again := v.Scrub(got, ""); got != again {
				t.Fatalf("%q became %q when looked at again", got, again)
			}
		}
	}
}

func FuzzScrub(f *testing.F) {
	for _, c := range canaries {
		f.Add(c, "map \"", "\": denied", "{}")
	}
	f.Fuzz(func(t *testing.T, value, before, after, shown string) {
		if len(value) > 200 || len(before)+len(after) > 2000 {
			return
		}
		v := New(value)
		got := v.Scrub(before+value+after, shown)
		if value != "" && got != Withheld && strings.Contains(got, value) {
			t.Errorf("%q is still in %q", value, got)
		}
		_ = v.Scrub(before+after, shown)
	})
}

func BenchmarkScrub(b *testing.B) {
	text := strings.Repeat("the share cannot be mapped: access is denied. ", 10)
	b.Run("no secret", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = New().Scrub(text, "")
		}
	})
	b.Run("a secret", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = New("p4ss-w0rd").Scrub(text, "")
		}
	})
}
