package query

import (
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// spellings are one of the values that a field can have, first as it is compared, then as people and the columns of tables also write it.
type spellings []string

// closed are the fields whose values are known beforehand. Any other value would find nothing, whatever the log holds, and is refused.
var closed = map[string][]spellings{
	"type":     {{string(audit.TypeRequest)}, {string(audit.TypeConnection)}, {string(audit.TypeAdmission)}, {string(audit.TypeLog)}},
	"stage":    ofStages(),
	"decision": {{DecisionAllow, "allowed"}, {DecisionDeny, "denied"}, {DecisionLogOnly}, {DecisionNone}},
	"effect":   {{string(audit.EffectAllow), "allowed"}, {string(audit.EffectDeny), "denied"}},
	"result": append([]spellings{
		{audit.ResultOK}, {audit.ResultError}, {audit.ResultDenied}, {audit.ResultRejected}, {audit.ResultPanic}, {audit.ResultOrphaned}, {audit.ResultIdle},
	}, codes...),
	"code":      codes,
	"host":      {{"yes", "true"}, {"no", "false"}},
	"mode":      {{"Enforce"}, {"LogOnly"}},
	"assurance": {{"pod"}, {"process"}, {"sid"}, {"none"}, {"apiserver"}},
	"verb":      {{"read"}, {"write"}, {"CREATE"}, {"UPDATE"}, {"DELETE"}, {"CONNECT"}},
}

// ofStages are the short names of stages, with the long ones that records have.
func ofStages() (all []spellings) {
	for stage, short := range stages {
		all = append(all, spellings{short, string(stage)})
	}
	slices.SortFunc(all, func(a, b spellings) int { return strings.Compare(a[0], b[0]) })
	return all
}

// codes are those of gRPC (https://grpc.io/docs/guides/status-codes/). Those of HTTP are numbers.
var codes = []spellings{
	{"OK"}, {"Canceled"}, {"Unknown"}, {"InvalidArgument"}, {"DeadlineExceeded"}, {"NotFound"}, {"AlreadyExists"}, {"PermissionDenied"}, {"ResourceExhausted"},
	{"FailedPrecondition"}, {"Aborted"}, {"OutOfRange"}, {"Unimplemented"}, {"Internal"}, {"Unavailable"}, {"DataLoss"}, {"Unauthenticated"},
}

// Words are the values that a field can have, nil if any text can be one. A value may be written in any case and with * for any characters, and
// some in other words too; - and the empty value are those of records that have none.
func Words(key string) (names []string) {
	for _, w := range closed[key] {
		names = append(names, w[0])
	}
	return names
}

// isNone says whether a value of a closed field means that a record has none: in tables a hyphen stands there.
func isNone(key, value string) bool { return value == "" || closed[key] != nil && value == "-" }

// meant are the values of a closed field that are meant by what was written. An error is a *SyntaxError.
func meant(key, value string) (found []string, err error) {
	p := newPattern(value)
	for _, w := range closed[key] {
		if slices.ContainsFunc(w, p.matches) {
			found = append(found, strings.ToLower(w[0]))
		}
	}
	isNumber := key == "code" && (isDigits(value) || strings.HasPrefix(value, "Code("))
	switch {
	case isNumber:
		return []string{strings.ToLower(value)}, nil
	case len(found) == 0:
		return nil, fault(value, 0, "%s is never that: it is %s", key, oneOf(Words(key)))
	}
	return found, nil
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// shortest text that may be the id of a token: they are UUIDs.
const minTokenID = 8

// isToken says whether a value of the field token can be that of a record.
func isToken(value string) bool {
	return slices.Contains([]string{"", "yes", "no", audit.TokenStale, audit.TokenUnbound}, strings.ToLower(value)) || len(value) >= minTokenID || strings.Contains(value, "*")
}
