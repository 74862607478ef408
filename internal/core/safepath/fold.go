package safepath

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// upper maps a letter as NTFS does when it compares names, in the scripts where every $UpCase table since
// Windows Vista agrees: ASCII, Latin-1, Latin Extended-A, Greek and Cyrillic. All other letters stay.
//
// A volume has its own table, and merging two names that the volume keeps apart would accept another
// directory; keeping apart what it merges only refuses. So the pairs must be one to one in Unicode too:
// U+0131 (dotless i), U+017F (long s), U+00B5 (micro) and U+03C2 (final sigma) do not come back from upper case
// and stay, and U+212A (Kelvin sign) and U+212B (Angstrom sign) are upper case already.
func upper(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			return r - ('a' - 'A')
		}
		return r
	}
	switch {
	case r >= 0xE0 && r <= 0x17E, // à … ž
		r >= 0x3AC && r <= 0x3CE, // ά … ώ
		r >= 0x430 && r <= 0x45F: // а … џ
		if u := unicode.ToUpper(r); unicode.ToLower(u) == r {
			return u
		}
	}
	return r
}

func fold(s string) string { return strings.Map(upper, s) }

// Lower is the lower case of a name of something else than a file: a pipe, a server, a share, a service. A letter beyond ASCII never becomes one of
// ASCII, as the Kelvin sign does in Unicode: no name that a rule has would be that of such a one.
func Lower(s string) string {
	return strings.Map(func(r rune) rune {
		if l := unicode.ToLower(r); r < utf8.RuneSelf || l >= utf8.RuneSelf {
			return l
		}
		return r
	}, s)
}

// EqualFold reports whether two names are the same to a file system that ignores case, without allocating. Where volumes
// differ it says no.
func EqualFold(a, b string) bool {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb && upper(ra) != upper(rb) {
			return false
		}
		a, b = a[na:], b[nb:]
	}
	return a == b
}
