package access

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// Rule permits callers operations of pipes. Rules only permit; what no rule permits is denied.
type Rule struct {
	Name  string
	Pipes []PipePattern
	// Spelled are those of Pipes whose group is spelled out.
	Spelled []PipePattern
	// All are all operations of the node API, and all methods of a pipe that has a full name.
	All bool
	// Operations are names of operations, methods, and services with a star.
	Operations []string
	Callers    []Pattern
	Permits    []string
	// Paths are directories. If there are any, the rule covers a call only if it names all the paths that its operation takes, and each of them is one
	// of the directories or lies in one. A path that is removed, emptied, mounted over or made a link must lie in one.
	Paths []Directory
	// OthersFree has a rule with Paths cover operations that are known to take none, too.
	OthersFree bool
	Shares     []Share
	Services   []string
	Limits     Limits

	reason string
}

// question is a call with its fields folded.
type question struct {
	group, version, operation string
	caller                    known
	paths                     pathArguments
	shares, services          []string
	goal                      goal
	found                     int // which caller of the rule that was found last agrees
}

func questionOf(c *Call) question {
	return question{
		group: c.Group, version: c.Version, operation: c.Operation, caller: fold(&c.Caller),
		paths: argumentsOf(c), shares: c.Shares, services: c.Services,
	}
}

// goal is what a search is for.
type goal int

const (
	goalRule        goal = iota // the first rule that covers the call
	goalNamed                   // the first rule that covers the call and names its caller
	goalAnyPath                 // the first rule that would, whatever the paths, shares and services
	goalConnections             // the first rule for the pipe and caller that bounds connections
	goalCaller                  // the first rule for the pipe and caller, whatever it allows
)

// covers compares a rule with all that is asked, except the caller.
func (r *Rule) covers(q *question) bool {
	if !coversAny(r.Pipes, q.group, q.version) {
		return false
	}
	switch q.goal {
	case goalConnections:
		return r.Limits.Connections > 0
	case goalCaller:
		return true
	}
	if !r.CoversOperation(q.group, q.operation) {
		return false
	}
	if q.goal == goalAnyPath {
		return true
	}
	_, ok := r.holdsPaths(&q.paths)
	return ok && r.nameOutside(q) == ""
}

// nameOutside says which share or service of the call the rule does not name; empty if it names them all. An operation that
// takes a share or a service and names none is outside of a rule that lists them.
func (r *Rule) nameOutside(q *question) string {
	if len(r.Shares) > 0 && TakesShares(q.operation) {
		if len(q.shares) == 0 {
			return "the call names no share, and the rule is for certain shares only"
		}
		for _, text := range q.shares {
			if !slices.ContainsFunc(r.Shares, func(s Share) bool { return s.Holds(text) }) {
				return string(appendQuoted(nil, text)) + " is not among its shares"
			}
		}
	}
	if len(r.Services) > 0 && TakesServices(q.operation) {
		if len(q.services) == 0 {
			return "the call names no service, and the rule is for certain services only"
		}
		for _, name := range q.services {
			if !slices.ContainsFunc(r.Services, func(s string) bool { return safepath.EqualFold(s, name) }) {
				return string(appendQuoted(nil, name)) + " is not among its services"
			}
		}
	}
	return ""
}

// names says whether the rule, which covers the call by one of its callers, names it by that one. A program in a pod or a
// container is no program of the node, nor is one of which that is in doubt.
func (r *Rule) names(q *question, by int) bool {
	c := &r.Callers[by]
	if !c.isName() || !IsOperation(q.operation) || !slices.Contains(r.Operations, q.operation) || !coversAny(r.Spelled, q.group, q.version) {
		return false
	}
	if c.Namespace != "" {
		return q.caller.level == caller.LevelPod
	}
	return q.caller.level == caller.LevelProcess && !q.caller.mayBeInside
}

// SpellsOut says whether the rule has the operation by its name, and the group in a pattern of a pipe.
func (r *Rule) SpellsOut(group, operation string) bool {
	return IsOperation(operation) && slices.Contains(r.Operations, operation) &&
		slices.ContainsFunc(r.Spelled, func(p PipePattern) bool { return p.Group == group })
}

// Standing is what one rule says to a call.
type Standing struct {
	// Outside says why the rule does not cover the call, whatever its caller; empty if it does.
	Outside string
	// Differs has, for each of the rule's callers, the first field in which the caller does not agree; empty if it agrees in all. It is not asked of a
	// call that is outside.
	Differs []Field
	// By is the first of the rule's callers that agrees, -1 if none does, and Names says whether the rule names the caller for the call by any.
	By    int
	Names bool
}

// Against asks the rule about a call, whatever others say.
func (r *Rule) Against(c Call) Standing {
	q, out := questionOf(&c), Standing{By: -1}
	switch {
	case !coversAny(r.Pipes, q.group, q.version):
		out.Outside = "pipes: none of them covers this pipe"
		return out
	case !r.CoversOperation(q.group, q.operation):
		out.Outside = "operations: " + q.operation + " is not among them"
		return out
	}
	if _, ok := r.holdsPaths(&q.paths); !ok {
		out.Outside = "paths: " + string(r.appendOutside(nil, &q))
		return out
	}
	if out.Outside = r.nameOutside(&q); out.Outside != "" {
		return out
	}
	for i := range r.Callers {
		field := r.Callers[i].differs(&q.caller)
		out.Differs = append(out.Differs, field)
		if field == "" {
			if out.By < 0 {
				out.By = i
			}
			out.Names = out.Names || r.names(&q, i)
		}
	}
	return out
}
