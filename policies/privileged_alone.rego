package pipeguard.admission

import data.pipeguard.parameters

# METADATA
# title: The admission of a guarded pipe rests on privileged alone
# description: >-
#   On Windows privileged has no effect, and the author of the pod sets it.
# custom:
#   code: PG004
#   severity: medium
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg004
#   remedy: >-
#     List the namespace and service account in allowedNamespaces and set requirement to AllowedNamespace. For a pipe that a
#     PipePolicy governs, make the container a subject of it.
findings contains {"code": "PG004", "effect": "warn", "field": field_of(container)} if {
	some container in input.containers
	[container.type, container.name] in privileged_mounters
}

# Collected once for an object: to hold each container against each mount takes time that grows with the square of
# the object's size.
privileged_mounters := {[mount.containerType, mount.container] |
	some mount in input.mounts
	mount.privileged == true
	not mount.guarded == false
	mount.neverAllowed == false
	rests_on_privilege(mount)
}

rests_on_privilege(mount) if {
	mount.policies == []
	privilege_alone_suffices
}

rests_on_privilege(mount) if {
	not mount.policies == []
	standing(mount.policies, mount.access, mount.privileged) == "privileged"
}

privilege_alone_suffices if {
	parameters_valid
	parameters.requirement == "PrivilegedOrAllowedNamespace"
	not namespace_allowed
}
