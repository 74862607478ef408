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

	"assurance": who(func(w *audit.Who) []string { return []string{w.Assurance} }),
	"namespace": pod(func(p *audit.WhoPod) []string { return []string{p.Namespace} }),
	"pod":       pod(func(p *audit.WhoPod) []string { return []string{p.Name, p.Namespace + "/" + p.Name, p.UID} }),
	"sa": pod(func(p *audit.WhoPod) []string {
		return []string{p.ServiceAccount, p.Namespace + "/" + p.ServiceAccount}
	}),
	"container": container(func(c *audit.WhoContainer) []string { return []string{c.Name, c.ID} }),
	"image":     container(func(c *audit.WhoContainer) []string { return []string{c.Image} }),
	"user": who(func(w *audit.Who) []string {
		if w.User == nil {
			return nil
		}
		return []string{w.User.SID, w.User.Name}
	}),
	"program": who(func(w *audit.Who) []string {
		if w.Process == nil {
			return nil
		}
		return []string{w.Process.Exe, Base(w.Process.Exe)}
	}),
	"pid": who(func(w *audit.Who) []string {
		if w.Process == nil {
			return nil
		}
		return []string{strconv.FormatUint(uint64(w.Process.PID), 10)}
	}),
	"host":  who(func(w *audit.Who) []string { return []string{yes(w.Host)} }),
	"token": who(func(w *audit.Who) []string { return []string{yes(w.Token), w.TokenState, w.TokenID} }),

	"pipe":    what(pipes),
	"group":   what(func(w *audit.What) []string { return []string{w.Group} }),
	"version": what(func(w *audit.What) []string { return []string{w.Version} }),
	"method":  what(func(w *audit.What) []string { return []string{w.Method, w.FullMethod, Base(w.FullMethod)} }),
	"verb":    what(func(w *audit.What) []string { return []string{w.Verb} }),
	"target": what(func(w *audit.What) (values []string) {
		for _, t := range w.Targets {
			values = append(values, t.Value, t.Canonical)
		}
		return values
	}),

	"decision": func(e *audit.Event) []string { return []string{Decision(e)} },
	"effect":   decided(func(d *audit.Decision) []string { return []string{string(d.Effect)} }),
	"mode":     decided(func(d *audit.Decision) []string { return []string{d.Mode} }),
	"rule":     decided(func(d *audit.Decision) []string { return []string{d.Rule} }),
	"reason":   decided(func(d *audit.Decision) []string { return []string{d.Reason} }),
	"policy": decided(func(d *audit.Decision) []string {
		if d.Policy == nil {
			return nil
		}
		return []string{d.Policy.Name}
	}),
	"revision": decided(func(d *audit.Decision) []string {
		if d.Policy == nil {
			return nil
		}
		return []string{d.Policy.Revision, bundle(d.Policy)}
	}),

	"result": ended(func(o *audit.Outcome) []string {
		if o.Code != "" { // which says more: tables show it for some results
			return []string{o.Result, o.Code}
		}
		return []string{o.Result}
	}),
	"code":  ended(func(o *audit.Outcome) []string { return []string{o.Code} }),
	"error": ended(func(o *audit.Outcome) []string { return []string{o.Error} }),

	"conn": func(e *audit.Event) []string {
		if e.Corr == nil {
			return nil
		}
		return []string{e.Corr.Conn}
	},
	"node": func(e *audit.Event) []string {
		if e.Where == nil {
			return nil
		}
		return []string{e.Where.Node}
	},
}

// Keys are the names of all fields that a filter can have.
func Keys() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(texts)), "seq", "bundle", "path", "since", "until")))
}

func who(get func(*audit.Who) []string) func(*audit.Event) []string {
	return func(e *audit.Event) []string {
		if e.Who == nil {
			return nil
		}
		return get(e.Who)
	}
}

func pod(get func(*audit.WhoPod) []string) func(*audit.Event) []string {
	return func(e *audit.Event) []string {
		if e.Who == nil || e.Who.Pod == nil {
			return nil
		}
		return get(e.Who.Pod)
	}
}

func container(get func(*audit.WhoContainer) []string) func(*audit.Event) []string {
	return func(e *audit.Event) []string {
		if e.Who == nil || e.Who.Container == nil {
			return nil
		}
		return get(e.Who.Container)
	}
}

func what(get func(*audit.What) []string) func(*audit.Event) []string {
	return func(e *audit.Event) []string {
		if e.What == nil {
			return nil
		}
		return get(e.What)
	}
}

func decided(get func(*audit.Decision) []string) func(*audit.Event) []string {
	return func(e *audit.Event) []string {
		if e.Decision == nil {
			return nil
		}
		return get(e.Decision)
	}
}

func ended(get func(*audit.Outcome) []string) func(*audit.Event) []string {
	return func(e *audit.Event) []string {
		if e.Outcome == nil {
			return nil
		}
		return get(e.Outcome)
	}
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
