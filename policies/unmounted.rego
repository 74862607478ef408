package pipeguard.admission

# METADATA
# title: A volume declares a guarded pipe that no container mounts
# description: >-
#   An ephemeral container could mount the volume later. No container mounts it yet, so none can count as privileged: the
#   volume is admitted in an allowed namespace alone, or, if PipePolicies govern the pipe, to a subject's service account.
#   The effect is that of a mount of the pipe.
# custom:
#   code: PG002
#   severity: high
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg002
#   remedy: Remove the volume.
findings contains {"code": "PG002", "effect": effect_of(volume), "field": field_of(volume)} if {
	some volume in input.unmounted
	not volume.guarded == false
	volume.neverAllowed == false # otherwise it is a PG003
	not declaration_permitted(volume)
}

declaration_permitted(volume) if {
	volume.policies == []
	parameters_valid
	namespace_allowed
}

# Whether a container is privileged is asked when one mounts it.
declaration_permitted(volume) if subjects_of(volume.policies, volume.access, true) != []
