package auditcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// wideTime is the format of times in wide tables.
const wideTime = "2006-01-02T15:04:05.000Z"

func header(isWide bool) []string {
	names := []string{"SEQ", "TIME", "STAGE", "CALLER", "PIPE", "METHOD", "TARGET", "OUTCOME", "DECISION"}
	if isWide {
		names = append(names, "ID", "RULE", "ERROR", "SERVICEACCOUNT", "IMAGE", "DOUBT", "POLICY")
	}
	return names
}

func row(r query.Record, isWide bool) []string {
	e := r.Event
	layout, stage := "01-02 15:04:05", query.StageName(e.Stage)
	if isWide {
		layout, stage = wideTime, string(e.Stage)
	}
	// The decision stands last: the longest reasons then widen no column.
	cells := []string{number(r), e.Time.UTC().Format(layout), stage, callerCell(e, isWide), "", "", "", outcome(e, isWide), ""}
	if e.What != nil {
		cells[4], cells[5], cells[6] = pipeName(e.What.Pipe, isWide), method(e.What, isWide), targets(e.What, isWide)
	}
	if e.Type == audit.TypeAdmission {
		cells[6] = strings.TrimSuffix(pod(e.Who)+": "+cells[6], ": ")
	}
	if e.Decision != nil {
		cells[8] = decision(e.Decision, isWide)
	}
	if isWide {
		rule, policy, text := "", "", ""
		if e.Decision != nil {
			rule, policy = e.Decision.Rule, policyName(e.Decision.Policy)
		}
		if e.Outcome != nil {
			text = e.Outcome.Error
		}
		cells = append(append(cells, e.ID, rule, text), append(identity(e.Who), policy)...)
	}
	for i, cell := range cells {
		if cells[i] = inert.Line(cell); cell == "" {
			cells[i] = "-"
		}
	}
	return cells
}

// number is that of a record, with a mark if it does not follow on the record before it.
func number(r query.Record) string {
	if r.Loose != "" {
		return fmt.Sprint("!", r.Seq)
	}
	return fmt.Sprint(r.Seq)
}

func pipeName(name string, isWide bool) string {
	if isWide {
		return name
	}
	return strings.TrimPrefix(name, "csi-proxy-")
}

// method names the operation, and behind it the served method where that has another name.
// A method that is not known has a served name only, which its caller chose, as it did a method of a forwarded pipe.
func method(w *audit.What, isWide bool) string {
	served := w.FullMethod[strings.LastIndexByte(w.FullMethod, '/')+1:]
	isAlone := served == "" || served == w.Method
	name := w.Method
	if !isWide {
		name, served = middle(name), middle(served)
	}
	name, served = query.Named(name), query.Named(served)
	switch {
	case w.Method == "" && w.FullMethod == "":
		return w.Verb
	case w.Method == "" && isWide:
		return query.Named(w.FullMethod)
	case w.Method == "":
		return served + " (unknown)"
	case isAlone:
		return name
	}
	return name + " (as " + served + ")"
}

func targets(w *audit.What, isWide bool) string {
	var values []string
	for _, t := range w.Targets {
		// Several mounts of one pipe are one target in the short table.
		if value := target(t, isWide); isWide || !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	more, open := min(max(0, w.MoreTargets), audit.MaxMoreTargets), ""
	if more == audit.MaxMoreTargets {
		open = " or more"
	}
	switch {
	case (isWide || len(values) == 0) && more > 0:
		return strings.Join(append(values, fmt.Sprintf("+%d%s", more, open)), ", ")
	case isWide || len(values) == 0:
		return strings.Join(values, ", ")
	case len(values) == 1 && more == 0:
		return values[0]
	}
	return fmt.Sprintf("%s +%d%s", values[0], len(values)-1+more, open)
}

func target(t audit.Target, isWide bool) string {
	switch {
	case !isWide:
		return query.Listed(middle(cmp.Or(t.Canonical, t.Value)))
	case t.Canonical == "" || t.Canonical == t.Value:
		return query.Listed(t.Value)
	}
	return query.Listed(t.Value) + " = " + query.Listed(t.Canonical)
}

// maxCell is the width, in characters, from which a target loses its middle.
const maxCell = 40

// middle shortens a text that is too long for a cell. Beginning and end of a path say most: where it is and what it names.
func middle(s string) string {
	runes := []rune(s)
	if len(runes) <= maxCell {
		return s
	}
	const head = 14
	return string(runes[:head]) + "…" + string(runes[len(runes)-(maxCell-head-1):])
}

func decision(d *audit.Decision, isWide bool) string {
	s := string(d.Effect)
	switch {
	case !isWide && d.Effect == audit.EffectAllow && d.Rule != "":
		s += ": " + d.Rule
	case d.Reason != "":
		s += ": " + d.Reason
	}
	if !strings.Contains(s, d.Rule) {
		s += " [" + d.Rule + "]"
	}
	if len(d.Permits) > 0 {
		s += " (permits " + strings.Join(d.Permits, ", ") + ")"
	}
	if d.Mode != "" && d.Mode != "Enforce" {
		s += " (" + d.Mode + ")"
	}
	return s
}

// policyName is the policy that decided, its revision and that of the bundle it came in.
func policyName(p *audit.Policy) string {
	switch {
	case p == nil:
		return ""
	case p.Bundle != 0:
		return fmt.Sprintf("%s %s, revision %d", p.Name, p.Revision, p.Bundle)
	}
	return strings.TrimSpace(p.Name + " " + p.Revision)
}

// outcome is the result with its code, and how often it was so; short, it is the one of the two that says more.
func outcome(e audit.Event, isWide bool) (s string) {
	o := e.Outcome
	switch {
	case o == nil:
		return ""
	case isWide:
		s = strings.TrimSpace(o.Result + " " + o.Code)
	case o.Result == audit.ResultError || o.Result == audit.ResultRejected:
		s = cmp.Or(o.Code, o.Result)
	default:
		s = o.Result
	}
	if n := e.Count(); n > 1 {
		since := ""
		if begin := e.Begin(); isWide && !begin.Equal(e.Time) {
			since = " since " + begin.UTC().Format(wideTime)
		}
		s += fmt.Sprintf(" (%d times%s)", n, since)
	}
	if o.CallerLeft {
		s += " (caller left)"
	}
	return s
}
