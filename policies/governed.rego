package pipeguard.admission

# METADATA
# title: A container mounts a pipe that PipePolicies govern, and is not a subject of them
# description: >-
#   PipePolicies say who may use this pipe: which service accounts, containers and images of which namespaces, and until when.
#   The container is not among them, or does not meet their requirement. The strictest action of these policies decides.
# custom:
#   code: PG010
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg010
#   remedy: >-
#     Remove the mount. If this is a CSI driver, make its container a subject of the PipePolicy that governs the pipe.
findings contains {"code": "PG010", "effect": effect_of(mount), "field": field_of(mount)} if {
	some mount in input.mounts
	not mount.policies == [] # otherwise the parameters decide, with PG001
	not mount.guarded == false
	mount.neverAllowed == false # otherwise it is a PG003, which no permission lifts
	not governed_permits(mount)
}

governed_permits(mount) if standing(mount.policies, mount.access, mount.privileged) in {"subject", "privileged"}
