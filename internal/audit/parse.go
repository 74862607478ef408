package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	if !decode(line, &e) {
		return parse(line)
	}
	if err := check(&e); err != nil {
		return Event{}, err
	}
	return e, nil
}

// parse is Parse by encoding/json.
func parse(line []byte) (Event, error) {
	var e Event
	if err := unmarshal(line, &e); err != nil {
		var version struct {
			V int `json:"v"`
		}
		if strictjson.UnmarshalCaseSensitivePreserveInts(line, &version) == nil && version.V != Version {
			return Event{}, errVersion(version.V)
		}
		return Event{}, fmt.Errorf("not a record: %w", err)
	}
	err := check(&e)
	if err == nil && e.What != nil {
		err = checkParams(e.What.Params)
	}
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

// check refuses what no writer writes, but for the parameters of a request.
func check(e *Event) error {
	switch {
	case e.V != Version:
		return errVersion(e.V)
	case e.Seq == 0 || e.Session == "":
		return errors.New("not a record: no session or number")
	case !isTime(e.Time), e.Who != nil && e.Who.Process != nil && !isTime(e.Who.Process.Start), e.Outcome != nil && !isTime(e.Outcome.First):
		return errors.New("not a record: in UTC, a time is not within the years 0 to 9999")
	}
	return checkWords(e)
}

func errVersion(is int) error {
	if is > Version {
		return fmt.Errorf("%w %d: a later release wrote it; read it with that one's pipeguard", ErrVersion, is)
	}
	return fmt.Errorf("%w %d", ErrVersion, is)
}

// unmarshal reads JSON to the letter, without an unknown field and none twice.
func unmarshal(raw []byte, into any) error {
	strict, err := strictjson.UnmarshalStrict(raw, into)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	return err
}

// The words that records have.
var (
	types  = []Type{TypeRequest, TypeConnection, TypeAdmission, TypeLog}
	stages = []Stage{StageRequestReceived, StageResponseComplete, StageConnectionClosed, StageLogOpen, StageLogClose, StageLogPrune, StagePanic, StageOrphaned,
		StageSummary}
	effects = []Effect{EffectAllow, EffectDeny}
	results = []string{ResultOK, ResultError, ResultDenied, ResultRejected, ResultPanic, ResultOrphaned, ResultIdle}
)

// checkWords refuses words that no record has: filters by those that there are would pass the record by.
func checkWords(e *Event) error {
	err := cmp.Or(known("type", e.Type, types), known("stage", e.Stage, stages))
	if err == nil && e.Decision != nil {
		err = known("effect", e.Decision.Effect, effects)
	}
	if err == nil && e.Outcome != nil {
		err = known("result", e.Outcome.Result, results)
	}
	return err
}

func known[T ~string](field string, word T, words []T) error {
	if !slices.Contains(words, word) {
		return fmt.Errorf("not a record: unknown %s %q", field, word)
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
	if err := unmarshal(raw, &params); err != nil {
		return fmt.Errorf("not a record: its parameters: %w", err)
	}
	return nil
}

// isTime says whether a time can be written again in UTC: one with a zone may lie in a year that no format has.
func isTime(t time.Time) bool { return t.UTC().Year() >= 0 && t.UTC().Year() <= 9999 }
