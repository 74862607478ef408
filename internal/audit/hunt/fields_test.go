package hunt

import (
	"strings"
	"testing"
)

// What a caller sends with a request must not push the decision about it out of what rules see.
func TestNoFieldIsLeftOutHoweverManyThereAre(t *testing.T) {
	many := `{"what":{"params":[` + strings.Repeat(`"",`, 2600) + `""]},"decision":{"effect":"deny"}}`
	for range 20 { // objects have no order
		f, err := Flatten([]byte(many))
		if err != nil || f.first("decision.effect") != "deny" || len(f["what.params"]) != 2601 {
			t.Fatalf("%v: %q, %d values", err, f.first("decision.effect"), len(f["what.params"]))
		}
	}
	deep := `{"a":` + strings.Repeat(`{"a":`, 1500) + `1` + strings.Repeat(`}`, 1501)
	f, err := Flatten([]byte(deep))
	if err != nil || len(f) != 0 {
		t.Errorf("%v: %d fields", err, len(f))
	}
}
