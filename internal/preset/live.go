package preset

import (
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// Live are the settings that are in force: parameters, the failure policy of the webhooks for pipes, and the mode of the floor. One that is not known is empty, and
// left out.
func Live(p admission.Parameters, failurePolicy, floorMode string) Settings {
	s := Settings{
		"parameters.action":            string(p.Action),
		"parameters.requirement":       string(p.Requirement),
		"parameters.allowedNamespaces": strings.Join(slices.Sorted(maps.Keys(p.AllowedNamespaces)), " "),
		"parameters.hostProcess":       string(p.HostProcess),
		"parameters.hostPaths":         string(p.HostPaths),
		"parameters.equalPower":        string(p.EqualPower),
		"webhook.failurePolicy":        failurePolicy,
		"floor.mode":                   floorMode,
	}
	if len(p.AllowedNamespaces) == 0 {
		s["parameters.allowedNamespaces"] = None
	}
	maps.DeleteFunc(s, func(_, value string) bool { return value == "" })
	return s
}
