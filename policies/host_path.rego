package pipeguard.admission

import data.pipeguard.parameters

# METADATA
# title: A path is a guarded host path, is beneath one or contains one
# description: >-
#   A guarded host path is a directory through which a pod can reach what guarded pipes protect, or take over the node: the kubelet's
#   with the sockets of CSI drivers, those of network plugins, of installed programs, of their state and of users. The parameter
#   hostPaths sets the effect: Ignore, Audit, Warn or Deny. Any other value denies. A path that a PipePolicy permits is exempt.
# custom:
#   code: PG011
#   severity: medium
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg011
#   remedy: >-
#     Mount a directory that belongs to the application. If it must be this one, make the container a subject of a PipePolicy with hostPaths.
findings contains {"code": "PG011", "effect": host_paths_effect, "field": field_of(entry)} if {
	some entry in host_entries
	entry.equalPower == "" # otherwise it is a PG008
	not host_path_permitted(entry)
	host_paths_effect != "none"
}

default host_paths_effect := "deny"

host_paths_effect := effects_of_host_actions[parameters.hostPaths]
