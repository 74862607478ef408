package pipeguard.admission

import data.pipeguard.parameters

# METADATA
# title: A path has to do with a guarded host path
# description: >-
#   The path is a directory through which a pod gets at what guarded pipes protect, or at the node, is beneath one, or one is in it: the kubelet's
#   with the sockets of CSI drivers, those of network plugins, of installed programs, of their state and of users. The parameter
#   hostPaths says what follows: Ignore, Audit, Warn or Deny. Any other value denies. Nothing follows for a path that a PipePolicy permits.
# custom:
#   code: PG011
#   severity: medium
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg011
#   remedy: >-
#     Mount a directory of the application's own. If it must be this one, make the container a subject of a PipePolicy with hostPaths.
findings contains {"code": "PG011", "effect": host_paths_effect, "field": field_of(entry)} if {
	some entry in host_entries
	entry.equalPower == "" # else it is a PG008
	not host_path_permitted(entry)
	host_paths_effect != "none"
}

default host_paths_effect := "deny"

host_paths_effect := effects_of_host_actions[parameters.hostPaths]
