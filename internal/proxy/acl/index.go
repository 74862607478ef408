package acl

import "slices"

// index finds the rules that could cover a call by who their callers are. It only leaves out rules that do not cover; those that it finds are compared
// in full, in their order: many rules of one caller for one pipe take as long as they are many.
type index struct {
	asked   []fields // the sets of fields that some caller of a rule asks for
	buckets map[who]*bucketOfRules
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
	byPipe  map[pipePattern][]entry // nil if they are few
}

// entry is one caller of one rule.
type entry struct{ rule, caller int }

// small is how many entries are compared one by one: about what looking for those of a pipe would cost.
const small = 8

// pipeOperations are what all rules with one pipe pattern allow to somebody.
type pipeOperations struct {
	all        bool
	operations map[string]bool
}

// derive builds what decisions look things up in.
func (p *Policy) derive() {
	p.modeOf, p.pipes, p.spelled = map[pipePattern]Mode{}, map[pipePattern]*pipeOperations{}, map[spelling]bool{}
	for _, m := range p.modes {
		if p.modeOf[m.pipe] != Enforce { // of two that overlap the stricter holds
			p.modeOf[m.pipe] = m.mode
		}
	}
	p.callers.buckets = map[who]*bucketOfRules{}
	for i := range p.rules {
		r := &p.rules[i]
		p.isConfined = p.isConfined || len(r.paths) > 0 || len(r.shares) > 0 || len(r.services) > 0
		for _, pattern := range r.pipes {
			pipe := p.pipes[pattern]
			if pipe == nil {
				pipe = &pipeOperations{operations: map[string]bool{}}
				p.pipes[pattern] = pipe
			}
			pipe.all = pipe.all || r.all
			for _, op := range r.operations {
				pipe.operations[op] = true
			}
		}
		r.spell(p.spelled)
		for j := range r.callers {
			for _, key := range r.callers[j].keys() {
				p.callers.add(key, entry{i, j})
			}
		}
	}
	for _, b := range p.callers.buckets {
		b.sort(p.rules)
	}
}

func (x *index) add(key who, e entry) {
	b := x.buckets[key]
	if b == nil {
		b = &bucketOfRules{}
		x.buckets[key] = b
		if set := key.fields(); !slices.Contains(x.asked, set) {
			x.asked = append(x.asked, set)
		}
	}
	b.entries = append(b.entries, e)
}

func (b *bucketOfRules) sort(rules []rule) {
	if len(b.entries) <= small {
		return
	}
	b.byPipe = map[pipePattern][]entry{}
	for _, e := range b.entries {
		for _, pipe := range rules[e.rule].pipes {
			if list := b.byPipe[pipe]; len(list) == 0 || list[len(list)-1] != e { // a pattern that stands twice
				b.byPipe[pipe] = append(list, e)
			}
		}
	}
}

// each calls visit with the entries of every who that the caller could be.
func (x *index) each(have who, visit func(*bucketOfRules)) {
	has := have.fields()
	for _, set := range x.asked {
		if set&^has != 0 { // what is not known agrees with nothing
			continue
		}
		if b := x.buckets[have.only(set)]; b != nil {
			visit(b)
		}
	}
}
