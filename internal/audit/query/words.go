package query

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// spellings are one of the values that a field can have, first as it is compared, then as people and the columns of tables also write it.
type spellings []string

// closed are the fields whose values are known beforehand. Any other value would find nothing, whatever the log holds, and is refused.
var closed = map[string][]spellings{
	"type":      {{string(audit.TypeRequest)}, {string(audit.TypeConnection)}, {string(audit.TypeAdmission)}, {string(audit.TypeLog)}},
	"stage":     ofStages(),
	"decision":  {{DecisionAllow, "allowed"}, {DecisionDeny, "denied"}, {DecisionLogOnly}, {DecisionNone}},
	"effect":    {{string(audit.EffectAllow), "allowed"}, {string(audit.EffectDeny), "denied"}},
	"result":    slices.Concat(results, codes),
	"code":      codes,
	"host":      {{"yes", "true"}, {"no", "false"}},
	"mode":      {{"Enforce"}, {"LogOnly"}},
	"assurance": {{"pod"}, {"process"}, {"sid"}, {"none"}, {"apiserver"}},
	"verb":      {{"read"}, {"write"}, {"CREATE"}, {"UPDATE"}, {"DELETE"}, {"CONNECT"}},
}

var results = []spellings{
	{audit.ResultOK}, {audit.ResultError}, {audit.ResultDenied}, {audit.ResultRejected}, {audit.ResultPanic}, {audit.ResultOrphaned}, {audit.ResultIdle},
}

// ofStages are the short names of stages, with the long ones that records have.
func ofStages() (all []spellings) {
	for stage, short := range stages {
		all = append(all, spellings{short, string(stage)})
	}
	slices.SortFunc(all, func(a, b spellings) int { return strings.Compare(a[0], b[0]) })
	return all
}

// codes are those of gRPC (https://grpc.io/docs/guides/status-codes/), in the order of their numbers.
var codes = []spellings{
	{"OK"}, {"Canceled"}, {"Unknown"}, {"InvalidArgument"}, {"DeadlineExceeded"}, {"NotFound"}, {"AlreadyExists"}, {"PermissionDenied"}, {"ResourceExhausted"},
	{"FailedPrecondition"}, {"Aborted"}, {"OutOfRange"}, {"Unimplemented"}, {"Internal"}, {"Unavailable"}, {"DataLoss"}, {"Unauthenticated"},
}

// Statuses of HTTP, which admission decisions have for a code.
const minStatus, maxStatus = 100, 599

// otherCode is how a gRPC code without a name is recorded.
var otherCode = regexp.MustCompile(`(?i)^Code\([0-9]{1,10}\)$`)

// numbered are the values of a code that is written as a number, or as a pattern of one.
func numbered(value string) (found []string) {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < len(codes) {
		return []string{strings.ToLower(codes[n][0])}
	}
	if otherCode.MatchString(value) {
		return []string{strings.ToLower(value)}
	}
	if strings.Trim(value, "0123456789*") != "" {
		return nil
	}
	matches := pattern(value)
	for n := minStatus; n <= maxStatus; n++ {
		if s := strconv.Itoa(n); matches(s) {
			found = append(found, s)
		}
	}
	return found
}

// form is the syntax of a field whose values are open. No record has a value of another form, whatever the log holds.
type form struct {
	pattern *regexp.Regexp
	is      string // what a value is, for people
}

// In each form * stands for any characters.
var (
	labelForm   = form{regexp.MustCompile(`(?i)^[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?$`), "at most 63 letters, digits and hyphens"}
	nameForm    = form{regexp.MustCompile(`(?i)^([a-z0-9*-]+/)?[a-z0-9.*-]*$`), "a name of letters, digits, hyphens and dots, or namespace/name"}
	numberForm  = form{regexp.MustCompile(`^[1-9*][0-9*]*$`), "a number from 1 on"}
	versionForm = form{regexp.MustCompile(`(?i)^[v*][0-9a-z*]*$`), "v1, v1beta1 or the like"}
	wordForm    = form{regexp.MustCompile(`^\S+$`), "one word without blanks"}
	pipeForm    = form{regexp.MustCompile(`^[^\\/\s]([^\\/]*[^\\/\s])?$`), `the name of a pipe, with or without \\.\pipe\`}
)

var forms = map[string]form{
	"namespace": labelForm, "pod": nameForm, "sa": nameForm, "pid": numberForm, "version": versionForm, "pipe": pipeForm,
	"container": wordForm, "image": wordForm, "group": wordForm, "token": wordForm, "id": wordForm, "conn": wordForm, "session": wordForm, "node": wordForm,
}

// hasForm refuses a value that no record can have for its syntax. An error is a *SyntaxError.
func hasForm(key, value string) error {
	if f, ok := forms[key]; ok && !f.pattern.MatchString(value) {
		return fault(value, 0, "%s is never that: it is %s; * stands for any characters", key, f.is)
	}
	return nil
}

// pipeDirectory is what stands before the name of a pipe in a path, in any spelling of its separators.
var pipeDirectory = regexp.MustCompile(`(?i)^[\\/]{2}[.?][\\/]pipe[\\/]`)

// Words are the values that a field can have, nil if any text can be one. A value may be written in any case and with * for any characters, and
// some in other words too; - and the empty value are those of records that have none.
func Words(key string) (names []string) {
	for _, w := range closed[key] {
		names = append(names, w[0])
	}
	return names
}

// isNone says whether a value of a closed field means that a record has none: in tables a hyphen stands there.
func isNone(key, value string) bool {
	return key != "decision" && (value == "" || closed[key] != nil && value == "-")
}

// meant are the values of a closed field that are meant by what was written. An error is a *SyntaxError.
func meant(key, value string) (found []string, err error) {
	if key == "decision" && (value == "" || value == "-") { // none is a word of its own there
		value = DecisionNone
	}
	for _, w := range closed[key] {
		if slices.ContainsFunc(w, pattern(value)) {
			found = append(found, strings.ToLower(w[0]))
		}
	}
	also := ""
	if key == "code" || key == "result" {
		found, also = append(found, numbered(value)...), ", or the number of a code"
	}
	if len(found) == 0 {
		return nil, fault(value, 0, "%s is never that: it is %s%s", key, oneOf(Words(key)), also)
	}
	return found, nil
}

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
