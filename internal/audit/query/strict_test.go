package query

import (
	"strings"
	"testing"
)

// Programs that read the same line must not come to different ends about what was decided.
func TestALineThatTwoReadersUnderstandDifferentlyIsNoRecord(t *testing.T) {
	decided := strings.Replace(line(1), `"prev"`, `"decision":{"effect":"deny","reason":"x","mode":"Enforce"},"prev"`, 1)
	withParams := func(params string) string {
		return strings.Replace(decided, `"decision"`, `"what":{"pipe":"p","params":`+params+`},"decision"`, 1)
	}
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for name, c := range map[string]struct {
		text string
		bad  bool
	}{
		"parameters":                {withParams(`{"path":"[[{\"","a":[{"path":1},{"path":2}]}`), false},
		"a parameter twice":         {withParams(`{"path":"a","path":"b"}`), true},
		"a parameter twice below":   {withParams(`{"a":[{"path":"a","p\u0061th":"b"}]}`), true},
		"parameters 64 deep":        {withParams(nested(64)), false},
		"parameters 65 deep":        {withParams(nested(65)), true},
		"an unknown type":           {strings.Replace(decided, `"type":"request"`, `"type":"requestx"`, 1), true},
		"an unknown stage":          {strings.Replace(decided, `"stage":"`, `"stage":"X`, 1), true},
		"an unknown effect":         {strings.Replace(decided, `"effect":"deny"`, `"effect":"denied"`, 1), true},
		"an unknown result":         {strings.Replace(decided, `"prev"`, `"outcome":{"result":"okay"},"prev"`, 1), true},
		"a known result":            {strings.Replace(decided, `"prev"`, `"outcome":{"result":"ok"},"prev"`, 1), false},
		"as it is written":          {decided, false},
		"a field in other letters":  {strings.Replace(decided, `"effect"`, `"Effect"`, 1), true},
		"a field twice":             {strings.Replace(decided, `"mode"`, `"effect":"allow","mode"`, 1), true},
		"an object twice":           {strings.Replace(decided, `"prev"`, `"decision":{"effect":"allow"},"prev"`, 1), true},
		"the version twice":         {strings.Replace(decided, `"v":1`, `"v":1,"v":1`, 1), true},
		"a number that is too high": {strings.Replace(decided, `"seq":1`, `"seq":18446744073709551616`, 1), true},
		"a time of the year 10000":  {strings.Replace(decided, "2026-03-01T12:00:00Z", "9999-12-31T23:59:59-23:59", 1), true},
		"a time before the year 0":  {strings.Replace(decided, "2026-03-01T12:00:00Z", "0000-01-01T00:00:00+23:59", 1), true},
		"a time of the last year":   {strings.Replace(decided, "2026-03-01T12:00:00Z", "9999-12-31T23:59:59Z", 1), false},
		"a start of that year":      {strings.Replace(decided, `"prev"`, `"who":{"assurance":"none","process":{"pid":1,"start":"9999-12-31T23:59:59-23:59"}},"prev"`, 1), true},
		"a number with a fraction":  {strings.Replace(decided, `"seq":1`, `"seq":1.5`, 1), true},
	} {
		got := seen(t, "x", strings.NewReader(c.text+"\n"))
		if len(got) != 1 || (got[0] == "line 1 is bad") != c.bad {
			t.Errorf("%s: %v", name, got)
		}
	}
}
