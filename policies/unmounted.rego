package pipeguard.admission

# METADATA
# title: A volume declares a guarded pipe that no container mounts
# description: >-
#   An ephemeral container could mount the volume later. There is no container that could be privileged,
#   so only an allowed namespace passes.
# custom:
#   code: PG002
#   severity: high
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg002
#   remedy: Remove the volume.
findings contains {"code": "PG002", "effect": "deny", "field": field_of(volume)} if {
	not unmounted_permitted
	some volume in input.unmounted
	not volume.guarded == false
	volume.neverAllowed == false # else it is a PG003
}

unmounted_permitted if {
	parameters_valid
	namespace_allowed
}
