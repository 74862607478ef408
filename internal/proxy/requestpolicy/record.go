package requestpolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/audit"
)

var (
	errNotACall   = errors.New("the record is not about a call that was decided")
	errIncomplete = errors.New("the record was shortened: the request cannot be read from it any more")
)

// FromRecord makes the input of a recorded call. An error that Is ErrNotShown means that the policy was not shown
// the call itself either, which was then refused with CodeInput; any other means that the record does not tell.
//
// The secrets of a call are in neither. What a record does not hold is as if it were not known. Whether the caller is named is
// not in it, and is for an access list to say.
func FromRecord(e *audit.Event, named bool) (ast.Value, error) {
	if e.Type != audit.TypeRequest || e.Who == nil || e.What == nil || e.What.Method == "" {
		return nil, errNotACall
	}
	request := null
	if len(e.What.Params) > 0 {
		value, err := recorded(e.What.Params, e.What.Redacted)
		if err != nil {
			return nil, err
		}
		request = value
	}
	method := e.What.FullMethod
	if method != e.What.Method { // else it was passed on, and is known by its full name only
		method = method[strings.LastIndexByte(method, '/')+1:]
	}
	s := Circumstances{Caller: e.Who.Caller(), Named: named, Pipe: e.What.Pipe, Now: Arrival(e)}
	if e.Where != nil {
		s.Node = e.Where.Node
	}
	var b builder
	in, err := b.input(request, &s, e.What.Group, e.What.Version, method, e.What.Method)
	if err != nil {
		return nil, notShown(err)
	}
	return in, nil
}

// ErrNotShown is the error of a call that no policy can be shown.
var ErrNotShown = errors.New("the call cannot be shown to the request policy")

func notShown(err error) error { return fmt.Errorf("%w: %w", ErrNotShown, err) }

// Arrival is when the call of a record arrived. A record of its end has the time of the end.
func Arrival(e *audit.Event) time.Time {
	if e.Outcome == nil {
		return e.Time
	}
	return e.Time.Add(-time.Duration(e.Outcome.LatencyUS) * time.Microsecond)
}

// recorded reads the parameters of a record. They have the same values as an input has, beside what was withheld.
func recorded(params json.RawMessage, redacted []string) (*ast.Term, error) {
	decoder := json.NewDecoder(strings.NewReader(string(params)))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil || document == nil {
		return nil, errIncomplete
	}
	for _, path := range redacted {
		if !withhold(document, strings.Split(path, ".")) {
			return nil, errIncomplete
		}
	}
	if err := bounded("request", document); err != nil {
		return nil, notShown(err)
	}
	value, err := ast.InterfaceToValue(document)
	if err != nil {
		return nil, fmt.Errorf("read the recorded request: %w", err)
	}
	return ast.NewTerm(value), nil
}

// withhold removes what was withheld, and says whether it was there.
func withhold(v any, path []string) bool {
	switch v := v.(type) {
	case map[string]any:
		if len(path) > 1 {
			return withhold(v[path[0]], path[1:])
		}
		_, there := v[path[0]]
		delete(v, path[0])
		return there
	case []any: // each of them has it withheld, and the list of what was withheld has it once for each
		for _, e := range v {
			withhold(e, path)
		}
		return true
	}
	return false
}

// bounded finds what was cut for the record, which no policy was shown. What was cut has its mark behind as much as was
// not, so it is longer than any text or list that was shown.
func bounded(path string, v any) error {
	switch v := v.(type) {
	case string:
		if len(v) > maxText {
			return fmt.Errorf("%s %w", path, errTooLong)
		}
	case []any:
		if len(v) > maxEntries {
			return fmt.Errorf("%s %w", path, errTooMany)
		}
		for _, e := range v {
			if err := bounded(path, e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := bounded(path+"."+key, v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// NotShown is the denial of a call that FromRecord says no policy can be shown.
func NotShown(err error) Decision { return deny(CodeInput, err.Error(), "", nil) }
