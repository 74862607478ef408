package query

import (
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// isUnsaid says that a summary does not hold a field, or not all of it, since its refusals may have differed in it: it holds what they share.
func isUnsaid(key string, e *audit.Event) bool {
	if e.Stage != audit.StageSummary || e.Count() == 1 {
		return false
	}
	switch key {
	case "assurance", "namespace", "pod", "sa", "container", "image", "host": // several callers may be of one container
		return e.Who == nil || e.Who.Doubt == audit.DoubtSeveral && e.Who.Pod == nil
	case "user":
		return e.Who == nil || e.Who.Doubt == audit.DoubtSeveral
	case "program", "pid":
		return e.Who == nil || e.Who.Process == nil
	case "token":
		return e.Who == nil || e.Who.Doubt == audit.DoubtSeveral || e.Who.TokenState == audit.TokenSeveral
	case "method":
		return e.What == nil || e.What.FullMethod == ""
	case "rule", "reason", "policy", "revision", "bundle": // whether there was a decision, its effect and its mode are the same for all
		return e.Decision != nil && e.Decision.Reason == "" && hasNone(decisionValues(key, e))
	case "verb", "error":
		return hasNone(texts[key](e))
	case "code", "result": // of which one value may be the code
		return e.Outcome == nil || e.Outcome.Code == ""
	}
	return false
}

// isPartly says that what a summary does hold of such a field is of all its refusals, even where there is more that it does not hold.
func isPartly(key string) bool { return key == "method" || key == "result" }

// leavesOut says that a record has more values of a field than it names. The pipes of an admission are its targets; a call is to one pipe, which is named.
func leavesOut(key string, e *audit.Event) bool {
	if key != "target" && (key != "pipe" || e.Type != audit.TypeAdmission) {
		return false
	}
	if e.What == nil {
		return e.IsUnread()
	}
	return e.What.MoreTargets > 0 || e.IsUnread() || key == "pipe" && slices.ContainsFunc(e.What.Targets, func(t audit.Target) bool {
		return t.Kind == "cut" || t.Kind == "pipe" && hasCutEnd(pipeOf(t)) || leadsToPipes(t)
	})
}

// leadsToPipes says that a target is none of the pipes and may lead to any: the directory that they are in, or what is above it.
func leadsToPipes(t audit.Target) bool {
	return pipepath.Kind(t.Kind) != pipepath.KindPipe && pipepath.Kind(t.Kind).NeverAllowed()
}

// isCut says that a summary does not hold all of a text.
func isCut(e *audit.Event, values []string) bool {
	return e.Stage == audit.StageSummary && slices.ContainsFunc(values, func(s string) bool {
		return strings.HasPrefix(s, audit.CutMark) || strings.HasSuffix(s, audit.CutMark)
	})
}

// decisionValues are those of a key of decisions; what has no text is there if the policy is.
func decisionValues(key string, e *audit.Event) []string {
	if key == "bundle" {
		key = "revision"
	}
	return texts[key](e)
}

func hasNone(values []string) bool {
	return !slices.ContainsFunc(values, func(s string) bool { return s != "" })
}
