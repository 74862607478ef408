package pipeguard.admission

import data.pipeguard.parameters

# METADATA
# title: A path gives as much power over the node as a guarded pipe
# description: >-
#   The path is a pipe of the container runtime or of Windows' own services, a directory from which Windows or the kubelet is run, a raw disk or
#   volume, or an administrative share. The parameter equalPower sets the effect: Ignore, Audit, Warn or Deny. Any other value denies. For a
#   directory that contains guarded host paths, the stricter of equalPower and hostPaths counts. A directory that a PipePolicy permits is exempt.
# custom:
#   code: PG008
#   severity: medium
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg008
#   remedy: Mount a directory that belongs to the application.
findings contains {"code": "PG008", "effect": effect, "field": field_of(entry)} if {
	some entry in host_entries
	not entry.equalPower == ""
	not host_path_permitted(entry)
	effect := effect_of_power(entry)
	effect != "none"
}

# Only a power that is known can be tolerated.
default effect_of_power(_) := "deny"

effect_of_power(entry) := strictest({equal_power_effect | true} | {host_paths_effect | not entry.place == ""}) if {
	entry.equalPower in {"pipe", "directory", "disk", "share"}
}

default equal_power_effect := "deny"

equal_power_effect := effects_of_host_actions[parameters.equalPower]

strictest(effects) := [effect | some effect in ["deny", "warn", "audit", "none"]; effect in effects][0]
