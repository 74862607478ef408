package acl

// goal is what a search is for.
type goal int

const (
	goalRule        goal = iota // the first rule that covers the call
	goalNamed                   // the first rule that covers the call and names its caller
	goalAnyPath                 // the first rule that would, whatever the paths, shares and services
	goalConnections             // the first rule for the pipe and caller that bounds connections
	goalCaller                  // the first rule for the pipe and caller, whatever it allows
)

// query is a request with its fields folded.
type query struct {
	group, version, operation string
	caller                    folded
	paths                     pathArguments
	shares, services          []string
	goal                      goal
	found                     int // which caller of the rule that was found last agrees
}

// covers compares a rule with all that is asked, except the caller.
func (r *rule) covers(q *query) bool {
	if !coversAny(r.pipes, q.group, q.version) {
		return false
	}
	switch q.goal {
	case goalConnections:
		return r.limits.Connections > 0
	case goalCaller:
		return true
	}
	if !r.coversOperation(q.group, q.operation) {
		return false
	}
	if q.goal == goalAnyPath {
		return true
	}
	_, ok := r.holdsPaths(&q.paths)
	return ok && r.nameOutside(q) == ""
}

// find returns the first rule, in the order of the list, that covers q.
func (p *Policy) find(q *query) (rule int, ok bool) {
	best := len(p.rules)
	if q.caller.level == 0 {
		return best, false
	}
	p.callers.each(q.caller.who, func(b *bucketOfRules) {
		if b.byPipe == nil {
			best = p.scan(b.entries, q, best)
			return
		}
		patterns, count := patternsOf(q.group, q.version)
		for _, pipe := range patterns[:count] {
			best = p.scan(b.byPipe[pipe], q, best)
		}
	})
	return best, best < len(p.rules)
}

// scan returns the first rule below best that covers q, or best.
func (p *Policy) scan(entries []entry, q *query, best int) int {
	for _, e := range entries {
		if e.rule >= best {
			return best
		}
		r := &p.rules[e.rule]
		if r.callers[e.caller].covers(&q.caller) && r.covers(q) && (q.goal != goalNamed || r.names(q, e.caller)) {
			q.found = e.caller
			return e.rule
		}
	}
	return best
}
