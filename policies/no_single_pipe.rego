package pipeguard.admission

import data.pipeguard.parameters

# METADATA
# title: A path does not name a single pipe
# description: >-
#   The path is malformed, or names the pipe root or a directory above it. It may give access to every pipe,
#   so neither a privileged container nor an allowed namespace may mount it. The strictest of the parameter action and the
#   actions of all PipePolicies sets the effect, but \\.\pipe\ itself is always refused: it shows that the guard is on.
# custom:
#   code: PG003
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg003
#   remedy: Name the one pipe that is needed, as in \\.\pipe\csi-proxy-filesystem-v1.
findings contains {"code": "PG003", "effect": effect_of_lead(entry), "field": field_of(entry)} if {
	some list in [input.mounts, input.unmounted, input.persistentVolumes]
	some entry in list
	not entry.neverAllowed == false
}

# Every pipe that is guarded may be meant, so the strictest action counts. No driver needs the directory of all pipes, and canaries ask for it.
default effect_of_lead(_) := "deny"

effect_of_lead(entry) := effects_of_actions[parameters.strictestAction] if {
	parameters_valid
	entry.neverAllowed == true
	is_string(entry.path)
	entry.path != `\\.\pipe\`
}
