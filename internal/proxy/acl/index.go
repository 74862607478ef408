package acl

import "strings"

// index finds the rules that could cover a call by the exact fields of their callers, and where many rules name the same
// caller by operation, pipe and path. It only leaves out rules that do not cover; those that it finds are compared in full.
type index struct {
	shapes []shape
	nodes  map[callerNames]*node
}

// entry is one caller of one rule.
type entry struct{ rule, caller int }

// node holds entries in the order of their rules. Large ones have them sorted into kids too, by level.
type node struct {
	entries []entry
	level   dimension
	kids    map[kidKey]*node
	longest int // bytes of a kid's directory
}

// dimension is by what the kids of a node are told apart.
type dimension int

const (
	byOperation dimension = iota
	byPipe
	byPath
	levels
)

// kidKey is an operation, a pipe pattern, or a directory; "*" and empty strings are those of all.
type kidKey struct{ a, b string }

// small is how many entries are compared one by one: about what looking for them would cost.
const small = 8

// pipeOperations are what all rules with one pipe pattern allow to somebody.
type pipeOperations struct {
	all        bool
	operations map[string]bool
}

// mostKids bounds the entries in all kids. A few rules with thousands of operations, pipes and paths each could fill any
// memory; beyond the bound rules of one caller are compared one by one.
const mostKids = 500_000

// derive builds what decisions look things up in, with at most room entries in kids.
func (p *Policy) derive(room int) {
	p.modeOf, p.pipes, p.spelled = map[pipePattern]Mode{}, map[pipePattern]*pipeOperations{}, map[spelling]bool{}
	for _, m := range p.modes {
		if p.modeOf[m.pipe] != Enforce { // of two that overlap the stricter holds
			p.modeOf[m.pipe] = m.mode
		}
	}
	entries := map[callerNames][]entry{}
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
			key := r.callers[j].names
			entries[key] = append(entries[key], entry{i, j})
		}
	}
	p.callers.nodes = make(map[callerNames]*node, len(entries))
	for key, list := range entries {
		p.callers.add(key)
		p.callers.nodes[key] = p.grow(list, byOperation, &room)
	}
}

// grow makes a node of entries, and kids of its entries if they are many.
func (p *Policy) grow(entries []entry, by dimension, room *int) *node {
	n := &node{entries: entries, level: by}
	if len(entries) <= small || by == levels {
		return n
	}
	lists := map[kidKey][]entry{}
	for _, e := range entries {
		keys := p.rules[e.rule].keys(by)
		if *room -= len(keys); *room < 0 {
			return n
		}
		for _, key := range keys {
			if list := lists[key]; len(list) == 0 || list[len(list)-1] != e { // a name that stands twice
				lists[key] = append(list, e)
			}
		}
	}
	n.kids = make(map[kidKey]*node, len(lists))
	for key, list := range lists {
		n.kids[key] = p.grow(list, by+1, room)
		n.longest = max(n.longest, len(key.a))
	}
	return n
}

// keys are those under which a rule is found.
func (r *rule) keys(by dimension) (keys []kidKey) {
	switch by {
	case byOperation:
		if r.all {
			keys = append(keys, kidKey{a: "*"})
		}
		for _, op := range r.operations {
			keys = append(keys, kidKey{a: op})
		}
	case byPipe:
		for _, pipe := range r.pipes {
			keys = append(keys, kidKey{pipe.group, pipe.version})
		}
	case byPath:
		if len(r.paths) == 0 {
			return []kidKey{{}}
		}
		for _, dir := range r.paths {
			keys = append(keys, kidKey{a: dir.key})
		}
	}
	return keys
}

// eachAncestor calls visit with the key of a path and those of all directories that it lies in, but those longer than longest.
func eachAncestor(path string, longest int, visit func(string)) {
	for path != "" {
		if len(path) <= longest {
			visit(path)
		}
		at := strings.LastIndexByte(path, '\\')
		if at < 0 {
			return
		}
		path = path[:at]
	}
}
