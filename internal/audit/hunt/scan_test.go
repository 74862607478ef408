package hunt

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scanned holds what is scanned of an object against Flatten, and says whether it could be.
func scanned(t *testing.T, s *scanner, doc string) bool {
	t.Helper()
	got, ok := s.scan(doc)
	if !ok {
		return false
	}
	want, err := Flatten([]byte(doc))
	if err != nil {
		t.Fatalf("%q is scanned, but not read by encoding/json: %v", doc, err)
	}
	for name := range s.asked {
		a, b := slices.Sorted(slices.Values(got[name])), slices.Sorted(slices.Values(want[name])) // names of one spelling have no order
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("%q: %s (-encoding/json +scanned): %s", doc, name, diff)
		}
	}
	return true
}

var scanNames = []string{"a", "a.b", "a.b.c", "intent_seq", "n", "derived.bundle_before", ""}

func TestScannedFieldsAreThoseOfEncodingJSON(t *testing.T) {
	s := newScanner(scanNames)
	for doc, want := range map[string]bool{
		`{}`: true, `{"a":"x"}`: true, `{"a":["x","y",{"b":1}],"n":-5}`: true, `{"a":{"b":true,"c":false},"n":null}`: true, `{"a.b":"x","a":{"b":"y"}}`: true,
		`{"a":"\\\"\u00e9\n"}`: true, `{"derived":{"bundle_before":7}}`: true, `{"":{"a":"x"},"a":{"":"y"}}`: true, `{"a":{},"n":[]}`: true, `{"a":"é"}`: true,
		`{"a":1,"a":2}`: false, `{"\u0061":1}`: false, `{"n":1.5}`: false, `{"n":1e5}`: false, ` {}`: false, `{"a": 1}`: false, `[]`: false, `null`: false, `{"a":"\ud83d\ude00"}`: false,
		`{"a":1}{}`: false, `{"a":1`: false, `{"a"}`: false, `{"a":1,}`: false, `{"a":[1,]}`: false, `{,}`: false, "{\"a\":\"\xff\"}": false, `{"a":"\x"}`: false, `{"a":01}`: false,
	} {
		if got := scanned(t, &s, doc); got != want {
			t.Errorf("%s: scanned %v, want %v", doc, got, want)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, doc := range []string{`{"a":["x","y",{"b":1}],"n":-5}`, `{"a":{"b":{"c":"\u0000\\"}},"derived":{"bundle_before":1}}`, `{"a":1,"a":2}`} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		s := newScanner(scanNames)
		scanned(t, &s, `{"a":"of the record before"}`)
		scanned(t, &s, doc)
	})
}
