package evidence

import (
	"strings"
	"testing"
)

func TestWhatALogDeclaresIsBounded(t *testing.T) {
	var r Report
	r.declare(7, strings.Repeat("ä", maxDeclaredText))
	if got, want := r.Declared[0], "record 7: "+strings.Repeat("ä", maxDeclaredText/2)+" [500 bytes cut]"; got != want {
		t.Errorf("%q", got)
	}
	for range 2 * maxDeclared {
		r.declare(8, "no more")
	}
	if n := len(r.Declared); n != maxDeclared+1 || !strings.Contains(r.Declared[n-1], "not listed") {
		t.Errorf("%d, at last %q", n, r.Declared[n-1])
	}
}
