package pipeguard.admission

import data.pipeguard.parameters

# METADATA
# title: A path gives as much power over the node as a guarded pipe
# description: >-
#   The path is a pipe of the container runtime, a directory from which Windows or the kubelet is run, a raw disk or volume, or an
#   administrative share. The parameter equalPower says what follows: Ignore, Audit, Warn or Deny. Any other value denies.
# custom:
#   code: PG008
#   severity: medium
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg008
#   remedy: Mount a directory of the application's own.
findings contains {"code": "PG008", "effect": effect, "field": field_of(entry)} if {
	some list in [input.mounts, input.unmounted, input.persistentVolumes]
	some entry in list
	not entry.equalPower == ""
	entry.guarded == false # else other rules ask for more
	entry.neverAllowed == false
	effect := effect_of_power(entry)
	effect != "none"
}

# Only a power that is known can be tolerated.
default effect_of_power(_) := "deny"

effect_of_power(entry) := equal_power_effect if entry.equalPower in {"pipe", "directory", "disk", "share"}

default equal_power_effect := "deny"

equal_power_effect := equal_power_effects[parameters.equalPower]

equal_power_effects := {"Ignore": "none", "Audit": "audit", "Warn": "warn", "Deny": "deny"}
