package access

import (
	"strconv"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Call is what is asked, in the words of the newest API version, with the served version beside them. For a pipe that is
// not of the node API, Group is its full name, `\\.\pipe\NAME`, and Version is empty. Operation is a full method name,
// "/package.Service/Method", where the method has no other.
type Call struct {
	Group, Version, Operation string
	Caller                    caller.Caller
	// Paths are all the path arguments of the call, empty ones too.
	Paths []string
	// Shares and Services are the SMB shares (`\\server\share`, without what follows) and the services that the call names.
	Shares, Services []string
}

// Effect is what the rules say, whatever the mode makes of it.
type Effect string

// Effects.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
)

// Mode says what becomes of a denial.
type Mode string

// Modes. A pipe that no pattern covers, and one that is covered by both, is enforced.
const (
	Enforce Mode = "Enforce" // a denied call is refused
	LogOnly Mode = "LogOnly" // a denied call passes and is recorded as denied
)

// Decision is the answer to a Call.
type Decision struct {
	Allowed bool // the call may proceed: a rule allows it, or the pipe's mode is LogOnly
	Effect  Effect
	Mode    Mode
	Rule    string   // the rule that allows, empty in a denial
	Reason  string   // for the caller and the record
	Permits []string // of that rule; not to be changed
	// Services are those that the rule names; not to be changed. None means that the rule does not name any.
	Services []string
	// Named says that the rule names the caller for the call. Such a rule
	// spells out the operation, the group of the pipe, and either the namespace with the service account or the container, or, of a
	// process of the node that is in no container without doubt, the account and one program. An author who writes FormatVolume beside a service account means it, and one
	// who writes "*" may not have thought of it.
	Named  bool
	Limits Limits // to be kept by the caller: those of the rule, and where it sets none those of all callers
}

// Decide answers a call: the first rule that covers pipe, operation, paths and caller allows it, and nothing else does. Rules that name the caller for it
// come before those that do not: what one of two rules permits to callers whom it does not name would else be permitted to those whom the other names.
// What it costs does not depend on how many rules there are that do not cover it.
func (l *List) Decide(c Call) Decision {
	d := Decision{Effect: Deny, Mode: l.mode(c.Group, c.Version), Limits: l.limits}
	if isUnknown(c.Group, c.Operation) { // to let it pass without a rule would be to let anything pass
		d.Mode = Enforce
	}
	q := questionOf(&c)
	if i, ok := l.find(&q); ok {
		rule := &l.rules[i]
		if d.Named = rule.names(&q, q.found); !d.Named {
			if i, ok := l.findNaming(&q); ok {
				rule, d.Named = &l.rules[i], true
			}
		}
		d.Allowed, d.Effect, d.Rule, d.Permits, d.Reason = true, Allow, rule.Name, rule.Permits, rule.reason
		d.Services, d.Limits = rule.Services, rule.Limits.Or(l.limits)
		return d
	}
	d.Allowed = d.Mode == LogOnly
	d.Reason = l.whyDenied(&q)
	return d
}

// Admits says whether the list could allow the caller any call on a pipe: the pipe is in mode LogOnly, or a rule for it names the
// caller. A caller that is not admitted is a stranger to the pipe. Every call of a stranger is denied, so a server may bound what
// strangers use up, together and before it has read their requests, without refusing a call that Decide would allow.
func (l *List) Admits(group, version string, who caller.Caller) bool {
	if l.mode(group, version) == LogOnly {
		return true
	}
	_, ok := l.find(&question{group: group, version: version, caller: fold(&who), goal: goalCaller})
	return ok
}

// Connections returns how many connections to a pipe the caller may hold open: what the first rule for the pipe that names
// the caller and sets a number says, else what holds for all callers; 0 if neither does. Before a call it is not known
// which rule will decide, so operations and paths are not asked.
func (l *List) Connections(group, version string, who caller.Caller) int {
	q := question{group: group, version: version, caller: fold(&who), goal: goalConnections}
	if i, ok := l.find(&q); ok {
		return l.rules[i].Limits.Connections
	}
	return l.limits.Connections
}

// mode is LogOnly if a pattern says so and none says otherwise: of two that overlap the stricter holds.
func (l *List) mode(group, version string) Mode {
	mode := Enforce
	patterns, n := patternsOf(group, version)
	for _, pattern := range patterns[:n] {
		switch l.modes[pattern] {
		case Enforce:
			return Enforce
		case LogOnly:
			mode = LogOnly
		}
	}
	return mode
}

// whyDenied says how far the best rule went.
func (l *List) whyDenied(q *question) string {
	if l.isConfined { // else a rule that holds but for its paths would hold
		q.goal = goalAnyPath
		if i, ok := l.find(q); ok {
			const most = 256 // bytes of nearly every answer
			text := append(make([]byte, 0, most), "rule "+l.rules[i].Name+" allows "+q.operation+" to this caller, but "...)
			return string(l.rules[i].appendOutside(text, q))
		}
	}
	hasPipe, hasOperation := l.reaches(q)
	switch {
	case hasOperation && q.caller.level == caller.LevelNone:
		return "the caller is not identified"
	case hasOperation:
		return "no rule that allows " + q.operation + " here names this caller"
	case hasPipe:
		return "no rule for this pipe allows " + q.operation
	}
	return "no rule names this pipe"
}

// appendOutside says why a rule's paths, shares or services do not hold those of the call.
func (r *Rule) appendOutside(text []byte, q *question) []byte {
	path, holds := r.holdsPaths(&q.paths)
	switch {
	case holds:
		return append(text, r.nameOutside(q)...)
	case path != "" && r.isOwnPath(path):
		return append(appendQuoted(text, path), " is a directory of the rule itself, and only what lies in it may be removed, replaced or mounted over"...)
	case path != "":
		return append(appendQuoted(text, path), " is not within its paths"...)
	case len(q.paths.written) > 0 && q.paths.least > 0:
		return append(text, "it names a path that is empty, or too few of them"...)
	}
	return append(text, "the call names no path, and the rule is for certain paths only"...)
}

// appendQuoted is strconv.AppendQuote, which takes its time with each character: nearly all paths need their separators
// doubled and nothing more.
func appendQuoted(text []byte, path string) []byte {
	start := len(text)
	text = append(text, '"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '\\':
			text = append(text, c, c)
		case c < ' ' || c == '"' || c > '~':
			return strconv.AppendQuote(text[:start], path)
		default:
			text = append(text, c)
		}
	}
	return append(text, '"')
}
