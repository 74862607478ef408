package pipeguard.admission

# METADATA
# title: A container mounts a guarded pipe without meeting the requirement
# description: >-
#   The pipe leads to a privileged service of the node. Only containers in allowed namespaces, or privileged ones,
#   may mount it, as the parameter requirement says. If the parameters cannot be read, no container may.
#   The parameter action sets the effect: Deny, Warn or Audit. Any other value denies.
# custom:
#   code: PG001
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg001
#   remedy: >-
#     Remove the mount. If this is a CSI driver, list its namespace and service account in allowedNamespaces.
findings contains {"code": "PG001", "effect": effect_of(mount), "field": field_of(mount)} if {
	not namespace_suffices
	some mount in input.mounts
	mount.policies == [] # otherwise it is a PG010
	not mount.guarded == false
	mount.neverAllowed == false # otherwise it is a PG003, which no permission lifts
	not privilege_permits(mount)
}

privilege_permits(mount) if {
	mount.privileged == true
	privilege_suffices
}
