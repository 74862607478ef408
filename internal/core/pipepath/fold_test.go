package pipepath

import (
	"testing"
	"unicode"
)

func TestFoldIsStableAndBlindToCaseForEveryRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := Fold(string(r))
		for _, s := range []string{want, string(unicode.ToUpper(r)), string(unicode.ToLower(r)), string(unicode.ToTitle(r))} {
			if got := Fold(s); got != want {
				t.Fatalf("Fold(%+q) = %+q, of its other case %+q it is %+q", string(r), want, s, got)
			}
		}
	}
}

func TestFoldNeverMakesASeparatorDotOrMarker(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		switch f := Fold(string(r)); f {
		case `\`, "/", ".", " ", ":", ";", "?", "$", "d", "*":
			t.Fatalf("Fold(%+q) = %q", string(r), f)
		}
	}
}

func TestFoldReplacesBytesThatAreNotUTF8(t *testing.T) {
	if got, want := Fold("A\xffB\xc3"), "a\ufffdb\ufffd"; got != want {
		t.Errorf("got %+q, want %+q", got, want)
	}
}
