package admission

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Scope says which pipes and host paths are guarded, which paths have equal power, and which PipePolicies govern a pipe. It goes with
// a snapshot of policies as its companion, so that what is extracted and what decides are of one revision. It does not change.
type Scope struct {
	guard     *pipepath.Guard
	powers    *pipepath.Powers
	hostPaths *pipepath.Powers
	governors governors
	policies  map[string]PipePolicy
	subjects  map[string]*access.Subjects // of the policies
	hosts     hosts                       // of their subjects
	objects   []string                    // the names of those that are objects of the API, sorted
	// host are the policies that permit HostProcess containers or host paths, by the namespace of their subjects.
	host map[string]*governing
	// canary is the name of a guarded pipe whose mount is refused without permission; empty if there is none.
	canary string
}

var errNoScope = errors.New("the active policies came without the pipes that they guard")

// scopeOf is the scope of a snapshot; nil if it has none.
func scopeOf(s policy.Snapshot) *Scope {
	scope, _ := s.Companion().(*Scope)
	return scope
}

// governors finds the policies that govern a pipe, however many policies there are.
type governors struct {
	exact    map[string]*governing // by the folded name of a pipe
	prefixes map[string]*governing // by the folded beginning of names
	lengths  []int                 // of the beginnings, each once
	policies map[string]PipePolicy
}

// governing are the policies that govern a pipe.
type governing struct {
	names []string // sorted
	// action is the strictest of theirs; privilegedSuffices reports whether each is content with a privileged container.
	action             Action
	privilegedSuffices bool
	// term is names as OPA wants them. The mounts of an object have the same one, so that OPA, which remembers what it found
	// out about a value, need not compare thousands of names.
	term *ast.Term
}

func governingBy(names []string, policies map[string]PipePolicy) *governing {
	g := &governing{names: names, privilegedSuffices: true, term: namesTerm(names)}
	for _, name := range names {
		p := policies[name]
		g.action = stricter(g.action, p.Action)
		g.privilegedSuffices = g.privilegedSuffices && p.Requirement == PrivilegedOrAllowedNamespace
	}
	return g
}

// noGovernors is for a pipe that no policy names. A list that is empty differs from none in JSON.
var noGovernors = &governing{names: []string{}, term: namesTerm([]string{})}

// stricter is the stricter of two actions; one that is not known is the strictest.
func stricter(a, b Action) Action {
	order := []Action{"", ActionAudit, ActionWarn} // and any other behind them
	rank := func(a Action) int {
		if i := slices.Index(order, a); i >= 0 {
			return i
		}
		return len(order)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

func newGovernors(policies map[string]PipePolicy) governors {
	exact, prefixes := map[string][]string{}, map[string][]string{}
	for _, name := range sortedKeys(policies) {
		for _, pattern := range policies[name].Pipes {
			to := exact
			text, prefix := strings.CutSuffix(pipepath.Fold(pattern), "*")
			if prefix {
				to = prefixes
			}
			if names := to[text]; len(names) == 0 || names[len(names)-1] != name { // patterns may differ in case only
				to[text] = append(names, name)
			}
		}
	}
	g := governors{exact: make(map[string]*governing, len(exact)), prefixes: make(map[string]*governing, len(prefixes)), policies: policies}
	for text, names := range exact {
		g.exact[text] = governingBy(names, policies)
	}
	for text, names := range prefixes {
		g.prefixes[text] = governingBy(names, policies)
		g.lengths = append(g.lengths, len(text))
	}
	slices.Sort(g.lengths)
	g.lengths = slices.Compact(g.lengths)
	return g
}

// of returns the policies that govern a pipe, and whether the list was made for it: where policies have different patterns. The caller
// does not change them.
func (g *governors) of(pipe string) (by *governing, made bool) {
	if pipe == "" {
		return noGovernors, false
	}
	head, _, _ := strings.Cut(pipe, `\`) // what is written below a pipe belongs to it, as for a Guard
	var one *governing
	var names []string // of several
	add := func(more *governing) {
		switch {
		case more == nil:
		case one == nil:
			one = more
		default:
			if names == nil {
				names = slices.Clone(one.names)
			}
			names = append(names, more.names...)
		}
	}
	add(g.exact[head])
	for _, n := range g.lengths {
		if n > len(pipe) {
			break
		}
		add(g.prefixes[pipe[:n]])
	}
	switch {
	case one == nil:
		return noGovernors, false
	case names == nil:
		return one, false
	}
	slices.Sort(names)
	return governingBy(slices.Compact(names), g.policies), true
}

// scope puts together what goes with the policies p, of which pipes are all PipePolicies.
func (p Policies) scope(pipes map[string]PipePolicy) (*Scope, error) {
	patterns := slices.Clone(p.Parameters.GuardedPipes)
	for _, name := range sortedKeys(pipes) {
		patterns = append(patterns, pipes[name].Pipes...)
	}
	for i := range patterns {
		patterns[i] = pipepath.Fold(patterns[i])
	}
	slices.Sort(patterns)
	patterns = slices.Compact(patterns)
	guard, err := pipepath.NewGuard(patterns...)
	if err != nil {
		return nil, err
	}
	powers, err := pipepath.NewPowers(p.Parameters.EqualPowerPipes, p.Parameters.EqualPowerPaths)
	if err != nil {
		return nil, err
	}
	hostPaths, err := pipepath.NewHostPaths(p.Parameters.GuardedHostPaths)
	if err != nil {
		return nil, err
	}
	s := &Scope{
		guard: guard, powers: powers, hostPaths: hostPaths, governors: newGovernors(pipes), policies: maps.Clone(pipes), objects: sortedKeys(p.PipePolicies),
		subjects: make(map[string]*access.Subjects, len(pipes)), hosts: hosts{},
	}
	for name, own := range pipes {
		s.subjects[name] = access.NewSubjects(own.Subjects)
		s.hosts.add(own.Subjects)
	}
	if len(p.Parameters.HostProcessAllowed) > 0 {
		own := p.Parameters.hostProcessPolicy()
		s.policies[hostProcessParameter], s.subjects[hostProcessParameter] = own, access.NewSubjects(own.Subjects)
		s.hosts.add(own.Subjects)
	}
	s.host = hostPolicies(s.policies)
	s.canary = s.unforgivenPipe(slices.Concat(p.Parameters.GuardedPipes, patterns), p.Parameters.Action)
	return s, nil
}

// hostPolicies finds the policies that permit HostProcess containers or host paths, by the namespace of their subjects.
func hostPolicies(policies map[string]PipePolicy) map[string]*governing {
	out := map[string]*governing{}
	for _, name := range sortedKeys(policies) {
		for _, s := range policies[name].Subjects {
			if !s.ReachesHost() {
				continue
			}
			by := out[s.Namespace]
			if by == nil {
				by = &governing{}
				out[s.Namespace] = by
			}
			if !slices.Contains(by.names[max(0, len(by.names)-1):], name) {
				by.names = append(by.names, name)
			}
		}
	}
	return out
}

// unforgivenPipe looks for a pipe whose mount is certainly refused without permission. ungoverned is the action where no policy governs.
func (s *Scope) unforgivenPipe(patterns []string, ungoverned Action) string {
	for _, pattern := range patterns {
		for _, name := range namesOf(pattern) {
			by, _ := s.governors.of(pipepath.Fold(name))
			forgiven := slices.ContainsFunc(by.names, func(policy string) bool { return s.policies[policy].lenient() })
			if len(by.names) == 0 {
				forgiven = ungoverned.Admits()
			}
			if !forgiven {
				return name
			}
		}
	}
	return ""
}

// namesOf gives names of pipes that a pattern covers.
func namesOf(pattern string) []string {
	prefix, ok := strings.CutSuffix(pattern, "*")
	if !ok {
		return []string{pattern}
	}
	return []string{prefix + "-filesystem-v1", prefix + "-pipeguard-canary", cmp.Or(prefix, "pipeguard-canary")}
}
