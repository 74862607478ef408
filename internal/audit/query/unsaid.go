package query

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// isUnsaid says that a summary does not hold a field, or not all of it, since its refusals may have differed in it: it holds what they share.
func isUnsaid(key string, e *audit.Event) bool {
	if e.Stage != audit.StageSummary || e.Count() == 1 {
		return false
	}
	switch key {
	case "assurance", "namespace", "pod", "sa", "container", "image", "user", "host":
		return e.Who == nil || e.Who.Doubt == audit.DoubtSeveral
	case "program", "pid":
		return e.Who == nil || e.Who.Process == nil
	case "token":
		return e.Who == nil || !e.Who.Token
	case "method":
		return e.What == nil || e.What.FullMethod == ""
	case "verb":
		return e.What == nil || e.What.Method == "" && e.What.FullMethod == ""
	case "mode", "rule", "reason", "policy", "revision", "bundle": // whether there was a decision is the same for all
		return e.Decision != nil && e.Decision.Reason == "" && hasNone(decisionValues(key, e))
	case "code", "error", "result":
		return hasNone(texts[key](e))
	}
	return false
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
