package query

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Decisions as people speak of them: a denial that was not enforced is neither.
const (
	DecisionAllow   = "allow"
	DecisionDeny    = "deny"
	DecisionLogOnly = "logonly"
	DecisionNone    = "none"
)

// Decision says in one word what was decided.
func Decision(e *audit.Event) string {
	switch {
	case e.Decision == nil:
		return DecisionNone
	case e.Decision.Effect == audit.EffectAllow:
		return DecisionAllow
	case e.Decision.Effect == audit.EffectDeny && e.Decision.Mode == "LogOnly":
		return DecisionLogOnly
	case e.Decision.Effect == audit.EffectDeny:
		return DecisionDeny
	}
	return string(e.Decision.Effect)
}

// stages are short names of stages.
var stages = map[audit.Stage]string{
	audit.StageLogOpen: "open", audit.StageLogClose: "close", audit.StageRequestReceived: "intent", audit.StageResponseComplete: "end",
	audit.StageConnectionClosed: "closed", audit.StagePanic: "panic", audit.StageOrphaned: "orphan", audit.StageLogPrune: "prune", audit.StageSummary: "summary",
}

// StageName is the short name of a stage, or the stage itself if it has none.
func StageName(s audit.Stage) string { return cmp.Or(stages[s], string(s)) }

// texts are the fields that are compared as text: each value that a record has of one. A record without has the empty text.
var texts = map[string]func(e *audit.Event) []string{
	"type":    func(e *audit.Event) []string { return []string{string(e.Type)} },
	"stage":   func(e *audit.Event) []string { return []string{string(e.Stage), stages[e.Stage]} },
	"session": func(e *audit.Event) []string { return []string{e.Session} },
	"id":      func(e *audit.Event) []string { return []string{e.ID} },

	"assurance": of(who, func(w *audit.Who) []string { return []string{w.Assurance} }),
	"namespace": of(pod, func(p *audit.WhoPod) []string { return []string{p.Namespace} }),
	"pod":       of(pod, func(p *audit.WhoPod) []string { return []string{p.Name, p.Namespace + "/" + p.Name, p.UID} }),
	"sa": of(pod, func(p *audit.WhoPod) []string {
		return []string{p.ServiceAccount, p.Namespace + "/" + p.ServiceAccount}
	}),
	"container": of(container, func(c *audit.WhoContainer) []string { return []string{c.Name, c.ID} }),
	"image":     of(container, func(c *audit.WhoContainer) []string { return []string{c.Image} }),
	"user":      of(user, func(u *audit.WhoUser) []string { return []string{u.SID, u.Name} }),
	"program":   of(process, func(p *audit.WhoProcess) []string { return []string{p.Exe, Base(p.Exe)} }),
	"pid":       of(process, func(p *audit.WhoProcess) []string { return []string{strconv.FormatUint(uint64(p.PID), 10)} }),
	"host":      of(who, func(w *audit.Who) []string { return []string{yes(w.Host)} }),
	"token":     of(who, func(w *audit.Who) []string { return []string{yes(w.Token), w.TokenState, w.TokenID} }),

	"pipe":    of(what, pipes),
	"group":   of(what, func(w *audit.What) []string { return []string{w.Group} }),
	"version": of(what, func(w *audit.What) []string { return []string{w.Version} }),
	"method":  of(what, func(w *audit.What) []string { return []string{w.Method, w.FullMethod, Base(w.FullMethod)} }),
	"verb":    of(what, func(w *audit.What) []string { return []string{w.Verb} }),
	"target": of(what, func(w *audit.What) (values []string) {
		for _, t := range w.Targets {
			values = append(values, t.Value, t.Canonical)
		}
		return values
	}),

	"decision": func(e *audit.Event) []string { return []string{Decision(e)} },
	"effect":   of(decision, func(d *audit.Decision) []string { return []string{string(d.Effect)} }),
	"mode":     of(decision, func(d *audit.Decision) []string { return []string{d.Mode} }),
	"rule":     of(decision, func(d *audit.Decision) []string { return []string{d.Rule} }),
	"reason":   of(decision, func(d *audit.Decision) []string { return []string{d.Reason} }),
	"policy":   of(policy, func(p *audit.Policy) []string { return []string{p.Name} }),
	"revision": of(policy, func(p *audit.Policy) []string { return []string{p.Revision, bundle(p)} }),

	"result": of(outcome, func(o *audit.Outcome) []string {
		if o.Code != "" { // which says more: tables show it for some results
			return []string{o.Result, o.Code}
		}
		return []string{o.Result}
	}),
	"code":  of(outcome, func(o *audit.Outcome) []string { return []string{o.Code} }),
	"error": of(outcome, func(o *audit.Outcome) []string { return []string{o.Error} }),

	"conn": of(corr, func(c *audit.Corr) []string { return []string{c.Conn} }),
	"node": of(where, func(w *audit.Where) []string { return []string{w.Node} }),
}

// of gets the values of a part of a record; a record without that part has none.
func of[P, V any](part func(*audit.Event) *P, values func(*P) V) func(*audit.Event) V {
	return func(e *audit.Event) (none V) {
		if p := part(e); p != nil {
			return values(p)
		}
		return none
	}
}

// The parts of a record, nil where it has none.
func who(e *audit.Event) *audit.Who           { return e.Who }
func what(e *audit.Event) *audit.What         { return e.What }
func decision(e *audit.Event) *audit.Decision { return e.Decision }
func outcome(e *audit.Event) *audit.Outcome   { return e.Outcome }
func corr(e *audit.Event) *audit.Corr         { return e.Corr }
func where(e *audit.Event) *audit.Where       { return e.Where }

var (
	process   = of(who, func(w *audit.Who) *audit.WhoProcess { return w.Process })
	user      = of(who, func(w *audit.Who) *audit.WhoUser { return w.User })
	pod       = of(who, func(w *audit.Who) *audit.WhoPod { return w.Pod })
	container = of(who, func(w *audit.Who) *audit.WhoContainer { return w.Container })
	policy    = of(decision, func(d *audit.Decision) *audit.Policy { return d.Policy })
)

// Keys are the names of all fields that a filter can have.
func Keys() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(texts)), "seq", "bundle", "path", "since", "until")))
}

// pipes are all names of the pipe that was called, or of the pipes that an admission was about.
func pipes(w *audit.What) (names []string) {
	add := func(name string) {
		if name != "" {
			names = append(names, name, strings.TrimPrefix(name, "csi-proxy-"))
		}
	}
	add(Base(w.Pipe))
	for _, t := range w.Targets {
		if t.Kind == "pipe" {
			add(pipeOf(t))
		}
	}
	return names
}

// protected is where pipes of administrators have names with separators.
const protected = `protectedprefix\`

// pipeOf is the name of the pipe that a target is, or lies below; of a protected pipe what stands last.
func pipeOf(t audit.Target) string {
	path := cmp.Or(t.Canonical, t.Value)
	directory := pipeDirectory.FindString(path)
	if directory == "" {
		return Base(path)
	}
	name := path[len(directory):]
	if len(name) > len(protected) && strings.EqualFold(strings.ReplaceAll(name[:len(protected)], "/", `\`), protected) {
		return Base(name)
	}
	if i := strings.IndexAny(name, `/\`); i >= 0 {
		name = name[:i]
	}
	return name
}

// Base is what stands after the last separator of a path or of a full method.
func Base(s string) string { return s[strings.LastIndexAny(s, `/\`)+1:] }

// Named is a name that its owner chose, a program's or a method's, for a cell that says more than the name: in quotes if it holds anything but letters, digits
// and -._+~$@:/\…, so that no part of it can be taken for what stands beside it. A quote within becomes \x22.
func Named(s string) string {
	isOther := func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(`-._+~$@:/\…`, r)
	}
	if !strings.ContainsFunc(s, isOther) {
		return s
	}
	return quoted(s)
}

// Listed is a path that its owner chose, for a cell that lists several or says more of it: in quotes if it holds what stands between the entries of lists and
// beside them. A quote within becomes \x22.
func Listed(path string) string {
	if !strings.ContainsAny(path, `,;"`) && !strings.Contains(path, " = ") && !strings.Contains(path, " +") {
		return path
	}
	return quoted(path)
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\x22`) + `"` }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func bundle(p *audit.Policy) string {
	if p.Bundle == 0 {
		return ""
	}
	return strconv.FormatUint(p.Bundle, 10)
}
