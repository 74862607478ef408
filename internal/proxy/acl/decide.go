package acl

import (
	"strconv"
	"strings"
)

// Decide answers a request: the first rule that covers pipe, operation, paths and caller allows it, and nothing else does. Rules that name the caller for it
// come before those that do not: what one of two rules permits to callers whom it does not name would else be permitted to those whom the other names.
// What it costs does not depend on how many rules there are that do not cover it.
func (p *Policy) Decide(r Request) Decision {
	d := Decision{Effect: Deny, Mode: p.mode(r.Group, r.Version), Limits: p.limits}
	if isUnknown(r.Group, r.Operation) { // to let it pass without a rule would be to let anything pass
		d.Mode = Enforce
	}
	q := queryOf(r)
	if i, ok := p.find(&q); ok {
		rule := &p.rules[i]
		if d.Named = rule.names(&q, q.found); !d.Named {
			if i, ok := p.findNaming(&q); ok {
				rule, d.Named = &p.rules[i], true
			}
		}
		d.Allowed, d.Effect, d.Rule, d.Permits, d.Reason = true, Allow, rule.name, rule.permits, rule.reason
		d.Services = rule.services
		d.Limits, d.CountedAs = rule.limits.Or(p.limits), rule.countedAs
		return d
	}
	d.Allowed = d.Mode == LogOnly
	d.Reason = p.whyDenied(&q)
	return d
}

func queryOf(r Request) query {
	return query{
		group: r.Group, version: r.Version, operation: r.Operation, caller: foldCaller(&r.Caller),
		paths: argumentsOf(r), shares: r.Shares, services: r.Services,
	}
}

// whyDenied says how far the best rule went.
func (p *Policy) whyDenied(q *query) string {
	if p.isConfined { // else a rule that holds but for its paths would hold
		q.goal = goalAnyPath
		if i, ok := p.find(q); ok {
			const most = 256 // bytes of nearly every answer
			text := append(make([]byte, 0, most), "rule "+p.rules[i].name+" allows "+q.operation+" to this caller, but "...)
			return string(p.rules[i].appendOutside(text, q))
		}
	}
	hasPipe, hasOperation := p.reaches(q)
	switch {
	case hasOperation && q.caller.level == 0:
		return "the caller is not identified"
	case hasOperation:
		return "no rule that allows " + q.operation + " here names this caller"
	case hasPipe:
		return "no rule for this pipe allows " + q.operation
	}
	return "no rule names this pipe"
}

// outside says why a rule's paths, shares or services do not hold those of the call.
func (r *rule) outside(q *query) string { return string(r.appendOutside(nil, q)) }

func (r *rule) appendOutside(text []byte, q *query) []byte {
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

// reaches says whether any rule is for the pipe, and whether one of those has the operation.
func (p *Policy) reaches(q *query) (pipe, operation bool) {
	patterns, n := patternsOf(q.group, q.version)
	for _, pattern := range patterns[:n] {
		if found := p.pipes[pattern]; found != nil {
			pipe = true
			operation = operation || found.covers(q.group, q.operation)
		}
	}
	return pipe, operation
}

// covers is rule.coversOperation for many rules at once.
func (o *pipeOperations) covers(group, operation string) bool {
	if !strings.Contains(operation, "/") && !isFullName(group) {
		return o.all || o.operations[operation]
	}
	service, method, ok := cutMethod(operation)
	if !ok || !isService(service) || !isWordOnly(method) {
		return false
	}
	return o.all && isFullName(group) || o.operations[operation] || o.operations["/"+service+"/*"]
}

// mode is LogOnly if a PipeMode says so and none says otherwise: of two that overlap the stricter holds.
func (p *Policy) mode(group, version string) Mode {
	mode := Enforce
	patterns, n := patternsOf(group, version)
	for _, pattern := range patterns[:n] {
		switch p.modeOf[pattern] {
		case Enforce:
			return Enforce
		case LogOnly:
			mode = LogOnly
		}
	}
	return mode
}

func coversAny(pipes []pipePattern, group, version string) bool {
	for _, pipe := range pipes {
		if pipe.covers(group, version) {
			return true
		}
	}
	return false
}
