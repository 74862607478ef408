package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	strictjson "sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Parse accepts what this version writes: one object, no unknown field, none twice, no unknown word, nothing after it. Names of fields are compared to the
// letter: of "effect" and "Effect", or of two "effect", another program may take the other one for what was decided.
func Parse(line []byte) (audit.Event, error) {
	var e audit.Event
	strict, err := strictjson.UnmarshalStrict(line, &e)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		var version struct {
			V int `json:"v"`
		}
		if strictjson.UnmarshalCaseSensitivePreserveInts(line, &version) == nil && version.V != audit.Version {
			return audit.Event{}, fmt.Errorf("%w %d", audit.ErrVersion, version.V)
		}
		return audit.Event{}, fmt.Errorf("not a record: %w", err)
	}
	switch {
	case e.V != audit.Version:
		return audit.Event{}, fmt.Errorf("%w %d", audit.ErrVersion, e.V)
	case e.Seq == 0 || e.Session == "":
		return audit.Event{}, errors.New("not a record: no session or number")
	case !isTime(e.Time), e.Who != nil && e.Who.Process != nil && !isTime(e.Who.Process.Start), e.Outcome != nil && !isTime(e.Outcome.First):
		return audit.Event{}, errors.New("not a record: in UTC, a time is not within the years 0 to 9999")
	}
	if err := checkWords(&e); err != nil {
		return audit.Event{}, err
	}
	if e.What != nil {
		if err := checkParams(e.What.Params); err != nil {
			return audit.Event{}, err
		}
	}
	return e, nil
}

// checkWords refuses words that no record has: filters by those that there are would pass the record by.
func checkWords(e *audit.Event) error {
	given := []struct{ key, value string }{{"type", string(e.Type)}, {"stage", string(e.Stage)}}
	if e.Decision != nil {
		given = append(given, struct{ key, value string }{"effect", string(e.Decision.Effect)})
	}
	if e.Outcome != nil {
		given = append(given, struct{ key, value string }{"result", e.Outcome.Result})
	}
	for _, g := range given {
		if !recorded[g.key][g.value] {
			return fmt.Errorf("not a record: unknown %s %q", g.key, g.value)
		}
	}
	return nil
}

// maxNested bounds objects and lists within each other in the parameters of a request. Those of CSI Proxy have less than five.
const maxNested = 64

// checkParams refuses parameters that two programs may read as different ones, and those that take more to write with indentation than they are long.
func checkParams(raw json.RawMessage) error {
	depth, inText := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{', c == '[':
			if depth++; depth > maxNested {
				return fmt.Errorf("not a record: its parameters are nested more than %d deep", maxNested)
			}
		case c == '}', c == ']':
			depth--
		}
	}
	if len(raw) == 0 {
		return nil
	}
	var params any
	strict, err := strictjson.UnmarshalStrict(raw, &params)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return fmt.Errorf("not a record: its parameters: %w", err)
	}
	return nil
}

// isTime says whether a time can be written again in UTC: one with a zone may lie in a year that no format has.
func isTime(t time.Time) bool { return t.UTC().Year() >= 0 && t.UTC().Year() <= 9999 }
