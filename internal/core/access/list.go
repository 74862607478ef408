package access

import (
	"slices"
	"strings"
)

// List answers calls by rules. It never changes, and may be asked by many goroutines. Rules that could cover a call are found by who their callers are; those
// that are found are compared in full, in their order: many rules of one caller for one pipe take as long as they are many.
type List struct {
	rules  []Rule
	modes  map[PipePattern]Mode
	limits Limits

	asked      []fields // the sets of fields that some caller of a rule asks for
	callers    map[who]*bucketOfRules
	pipes      map[PipePattern]*pipeOperations
	isConfined bool              // some rule has paths, shares or services
	spelled    map[spelling]bool // operations for which rules name a caller
}

// who are the fields of a caller that are looked up as they are. What is not asked for is empty.
type who struct{ user, exe, namespace, account string }

// fields is a set of fields of who: bits in their order.
type fields uint8

// fields are those that are set.
func (w who) fields() (set fields) {
	for i, value := range [...]string{w.user, w.exe, w.namespace, w.account} {
		if value != "" {
			set |= 1 << i
		}
	}
	return set
}

// only leaves the other fields out.
func (w who) only(set fields) who {
	for i, value := range [...]*string{&w.user, &w.exe, &w.namespace, &w.account} {
		if set&(1<<i) == 0 {
			*value = ""
		}
	}
	return w
}

// bucketOfRules are the entries of one who, in the order of their rules: all of them, and those of each pipe.
type bucketOfRules struct {
	entries []entry
	byPipe  map[PipePattern][]entry // nil if they are few
}

// entry is one caller of one rule.
type entry struct{ rule, caller int }

// small is how many entries are compared one by one: about what looking for those of a pipe would cost.
const small = 8

// pipeOperations are the operations that all rules with one pipe pattern allow to any caller.
type pipeOperations struct {
	all        bool
	operations map[string]bool
}

// spelling is an operation of a group, both spelled out.
type spelling struct{ group, operation string }

// NewList makes rules ready, which it keeps. modes are those of pipes; limits hold for every caller where the rule that decides sets none.
func NewList(rules []Rule, modes map[PipePattern]Mode, limits Limits) *List {
	l := &List{
		rules: rules, modes: modes, limits: limits,
		callers: map[who]*bucketOfRules{}, pipes: map[PipePattern]*pipeOperations{}, spelled: map[spelling]bool{},
	}
	for i := range rules {
		r := &rules[i]
		r.reason = "allowed by rule " + r.Name
		l.isConfined = l.isConfined || len(r.Paths) > 0 || len(r.Shares) > 0 || len(r.Services) > 0
		for _, pattern := range r.Pipes {
			pipe := l.pipes[pattern]
			if pipe == nil {
				pipe = &pipeOperations{operations: map[string]bool{}}
				l.pipes[pattern] = pipe
			}
			pipe.all = pipe.all || r.All
			for _, op := range r.Operations {
				pipe.operations[op] = true
			}
		}
		l.spell(r)
		for j := range r.Callers {
			for _, key := range r.Callers[j].keys() {
				l.add(key, entry{i, j})
			}
		}
	}
	for _, b := range l.callers {
		b.sort(rules)
	}
	return l
}

// spell notes the operations for which the rule names a caller.
func (l *List) spell(r *Rule) {
	if !slices.ContainsFunc(r.Callers, func(c Pattern) bool { return c.isName() }) {
		return
	}
	for _, pipe := range r.Spelled {
		for _, operation := range r.Operations {
			if IsOperation(operation) {
				l.spelled[spelling{pipe.Group, operation}] = true
			}
		}
	}
}

func (l *List) add(key who, e entry) {
	b := l.callers[key]
	if b == nil {
		b = &bucketOfRules{}
		l.callers[key] = b
		if set := key.fields(); !slices.Contains(l.asked, set) {
			l.asked = append(l.asked, set)
		}
	}
	b.entries = append(b.entries, e)
}

func (b *bucketOfRules) sort(rules []Rule) {
	if len(b.entries) <= small {
		return
	}
	b.byPipe = map[PipePattern][]entry{}
	for _, e := range b.entries {
		for _, pipe := range rules[e.rule].Pipes {
			if list := b.byPipe[pipe]; len(list) == 0 || list[len(list)-1] != e { // a pattern that stands twice
				b.byPipe[pipe] = append(list, e)
			}
		}
	}
}

// find returns the first rule, in the order of the list, that covers q.
func (l *List) find(q *question) (rule int, ok bool) {
	best := len(l.rules)
	if q.caller.level == 0 {
		return best, false
	}
	has := q.caller.fields()
	for _, set := range l.asked {
		if set&^has != 0 { // what is not known agrees with nothing
			continue
		}
		b := l.callers[q.caller.only(set)]
		switch {
		case b == nil:
		case b.byPipe == nil:
			best = l.scan(b.entries, q, best)
		default:
			patterns, count := patternsOf(q.group, q.version)
			for _, pipe := range patterns[:count] {
				best = l.scan(b.byPipe[pipe], q, best)
			}
		}
	}
	return best, best < len(l.rules)
}

// scan returns the first rule below best that covers q, or best.
func (l *List) scan(entries []entry, q *question, best int) int {
	for _, e := range entries {
		if e.rule >= best {
			return best
		}
		r := &l.rules[e.rule]
		if r.Callers[e.caller].differs(&q.caller) == "" && r.covers(q) && (q.goal != goalNamed || r.names(q, e.caller)) {
			q.found = e.caller
			return e.rule
		}
	}
	return best
}

// findNaming returns the first rule that covers the call and names its caller. It is looked for only where some rule names a caller for the operation.
func (l *List) findNaming(q *question) (rule int, ok bool) {
	if !l.spelled[spelling{q.group, q.operation}] {
		return 0, false
	}
	q.goal = goalNamed
	return l.find(q)
}

// reaches says whether any rule is for the pipe, and whether one of those has the operation.
func (l *List) reaches(q *question) (pipe, operation bool) {
	patterns, n := patternsOf(q.group, q.version)
	for _, pattern := range patterns[:n] {
		if found := l.pipes[pattern]; found != nil {
			pipe = true
			operation = operation || coversOperation(q.group, q.operation, found.all, func(name string) bool { return found.operations[name] })
		}
	}
	return pipe, operation
}

// Names says whether a rule for the pipe has the method by its own name. There are as many such methods as somebody wrote
// down, whatever callers send.
func (l *List) Names(group, version, method string) bool {
	if !IsMethod(method) || strings.HasSuffix(method, "/*") {
		return false
	}
	patterns, n := patternsOf(group, version)
	for _, pattern := range patterns[:n] {
		if pipe := l.pipes[pattern]; pipe != nil && pipe.operations[method] {
			return true
		}
	}
	return false
}
