package policy

import (
	"strings"
	"testing"
)

func TestAKeyOfTheResultIsNotWrittenOut(t *testing.T) {
	for _, result := range []string{
		`{"allowed": true, "findings": [], [input.long, input.long]: 1}`, `{"allowed": true, "findings": [{[input.long]: "x"}]}`,
		`{"allowed": true, "findings": [{[input.long]: 1}]}`, `{"allowed": true, "findings": [], input.long: 1}`,
	} {
		_, err := activated(t, deciding(result), patient).Decide(t.Context(), value(t, map[string]any{"long": strings.Repeat("x", 1<<16)}))
		if reasonOf(err) != ReasonType || len(err.Error()) > 200 {
			t.Errorf("%s: %d bytes, %.100v", result, len(err.Error()), err)
		}
	}
}
