package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	strictjson "sigs.k8s.io/json"
)

// LineError is a line that holds no record.
type LineError struct {
	Line  int // counted from 1
	Bytes int // length of the line without its newline; of a line that is too long, as far as it was read
	// Torn means that the line is the last one and has no newline: its write was cut short.
	Torn bool
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// Faults of lines.
var (
	ErrTooLong = fmt.Errorf("longer than %d bytes", MaxRecord)
	ErrTorn    = errors.New("ends without a newline")
	ErrVersion = errors.New("unknown record version")
)

// Parse reads a line without its newline as a record of this version to the letter, so that no two readers understand it differently: one object, no unknown
// field, none twice, no unknown word, nothing after it. Names of fields are compared to the letter: of "effect" and "Effect", or of two "effect", another
// program may take the other one for what was decided.
func Parse(line []byte) (Event, error) {
	var e Event
	strict, err := strictjson.UnmarshalStrict(line, &e)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		var version struct {
			V int `json:"v"`
		}
		if strictjson.UnmarshalCaseSensitivePreserveInts(line, &version) == nil && version.V != Version {
			return Event{}, fmt.Errorf("%w %d", ErrVersion, version.V)
		}
		return Event{}, fmt.Errorf("not a record: %w", err)
	}
	switch {
	case e.V != Version:
		return Event{}, fmt.Errorf("%w %d", ErrVersion, e.V)
	case e.Seq == 0 || e.Session == "":
		return Event{}, errors.New("not a record: no session or number")
	case !isTime(e.Time), e.Who != nil && e.Who.Process != nil && !isTime(e.Who.Process.Start), e.Outcome != nil && !isTime(e.Outcome.First):
		return Event{}, errors.New("not a record: in UTC, a time is not within the years 0 to 9999")
	}
	if err := checkWords(&e); err != nil {
		return Event{}, err
	}
	if e.What != nil {
		if err := checkParams(e.What.Params); err != nil {
			return Event{}, err
		}
	}
	return e, nil
}

// checkWords refuses words that no record has: filters by those that there are would pass the record by.
func checkWords(e *Event) error {
	given := []struct{ key, value string }{{"type", string(e.Type)}, {"stage", string(e.Stage)}}
	if e.Decision != nil {
		given = append(given, struct{ key, value string }{"effect", string(e.Decision.Effect)})
	}
	if e.Outcome != nil {
		given = append(given, struct{ key, value string }{"result", e.Outcome.Result})
	}
	for _, g := range given {
		if !knownWords[g.key][g.value] {
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

// knownWords are the words that records have in fields whose values are known beforehand, to the letter.
var knownWords = map[string]map[string]bool{
	"type":   wordsOf(TypeRequest, TypeConnection, TypeAdmission, TypeLog),
	"effect": wordsOf(EffectAllow, EffectDeny),
	"result": wordsOf(ResultOK, ResultError, ResultDenied, ResultRejected, ResultPanic, ResultOrphaned, ResultIdle),
	"stage": wordsOf(StageLogOpen, StageLogClose, StageLogPrune, StageRequestReceived, StageResponseComplete, StagePanic,
		StageOrphaned, StageSummary, StageConnectionClosed),
}

func wordsOf[T ~string](all ...T) map[string]bool {
	words := map[string]bool{}
	for _, w := range all {
		words[string(w)] = true
	}
	return words
}
