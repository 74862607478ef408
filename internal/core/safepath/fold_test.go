package safepath

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestUpperMergesPairsAlone walks all of Unicode: a letter that changes has exactly one partner, which does
// not change, and is as long in UTF-8, so that a folded path is as long as the path.
func TestUpperMergesPairsAlone(t *testing.T) {
	lower := map[rune]rune{}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		u := upper(r)
		if u == r {
			continue
		}
		if other, ok := lower[u]; ok {
			t.Errorf("%U and %U both fold to %U", other, r, u)
		}
		lower[u] = r
		if upper(u) != u {
			t.Errorf("%U folds to %U, which folds to %U", r, u, upper(u))
		}
		if unicode.ToLower(u) != r || utf8.RuneLen(u) != utf8.RuneLen(r) {
			t.Errorf("%U folds to %U, which is no pair", r, u)
		}
	}
	for l, u := range map[rune]rune{'a': 'A', 'z': 'Z', 'é': 'É', 'ÿ': 'Ÿ', 'ž': 'Ž', 'ά': 'Ά', 'ω': 'Ω', 'ώ': 'Ώ', 'я': 'Я', 'ё': 'Ё', 'џ': 'Џ'} {
		if upper(l) != u {
			t.Errorf("%U folds to %U, want %U", l, upper(l), u)
		}
	}
	if len(lower) > 26+31+64+34+48 {
		t.Errorf("%d pairs: more letters fold than ASCII, Latin-1, Latin Extended-A, Greek and Cyrillic have", len(lower))
	}
}

func TestUpperKeepsApartWhatNTFSKeepsApart(t *testing.T) {
	for r, other := range map[rune]rune{
		'\u212a': 'k', // Kelvin sign
		'\u212b': 'å', // Angstrom sign
		'\u2126': 'ω', // Ohm sign
		'\u0131': 'i', // dotless i
		'\u0130': 'i', // capital I with a dot
		'\u017f': 's', // long s
		'\u00b5': 'μ', // micro sign
		'ß':      'ẞ',
		'ς':      'σ',
		'ǆ':      'ǅ',
		'÷':      '×',
		'𐐨':      '𐐀', // Deseret: two UTF-16 units, which NTFS compares one by one
	} {
		if upper(r) == upper(other) {
			t.Errorf("%U and %U both fold to %U", r, other, upper(r))
		}
		if upper(r) != r && r != 'ǆ' {
			t.Errorf("%U folds to %U", r, upper(r))
		}
	}
}

func TestPathFoldIsOneKeyForTheSpellingsOfAPath(t *testing.T) {
	r := testRoots(t)
	key := func(path string) string {
		p, err := r.Check(path)
		if err != nil {
			t.Fatal(err)
		}
		return p.Fold()
	}
	want := `C:\VAR\LIB\KUBELET\PODS\GRÖßE`
	for _, path := range []string{kubelet + `\pods\Größe`, kubelet + `\PODS\gRÖßE\`, `c:\VAR\lib\Kubelet\Pods\größe`} {
		if got := key(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{kubelet + "\\pods\\gro\u0308ße", kubelet + `\pods\GRÖSSE`, kubelet + `\pods\größ`} {
		if key(path) == want {
			t.Errorf("%s has the key of another path", path)
		}
	}
}

func TestEqualFoldFoldsOnlyCase(t *testing.T) {
	for _, pair := range [][2]string{
		{`C:\kubelet`, "C:\\\u212Aubelet"}, {`C:\i`, "C:\\\u0131"}, {`C:\s`, "C:\\\u017F"}, {`C:\a`, `C:\a\`}, {`C:\a`, `C:\b`}, {"C:\\\u00e9", "C:\\e\u0301"},
	} {
		if EqualFold(pair[0], pair[1]) || EqualFold(pair[1], pair[0]) {
			t.Errorf("%q is taken for %q", pair[1], pair[0])
		}
	}
	if !EqualFold(`C:\Kubelet\Ä`, `c:\kUBELET\ä`) {
		t.Error("case is not folded")
	}
}

func TestLowerMakesNoLetterOneOfASCII(t *testing.T) {
	for name, want := range map[string]string{"MSiSCSI": "msiscsi", "Dienst-Ü": "dienst-ü", "m\u017fiscsi": "m\u017fiscsi", "\u212a": "\u212a", "MS\u0130": "ms\u0130"} {
		if got := Lower(name); got != want {
			t.Errorf("Lower(%+q) = %+q, want %+q", name, got, want)
		}
	}
	for r := rune(128); r < 0x30000; r++ {
		if low := Lower(string(r)); len(low) == 1 {
			t.Errorf("%U becomes %q", r, low)
		}
		if EqualFold(string(r), "k") || EqualFold(string(r), "s") || EqualFold(string(r), "i") {
			t.Errorf("%U is a letter of ASCII", r)
		}
	}
}
