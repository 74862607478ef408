package pipeguard.admission

import data.pipeguard.parameters

# METADATA
# title: A HostProcess container reaches every pipe of its node
# description: >-
#   It runs on the node itself and opens pipes without a mount, so that only the node can tell which.
#   The parameter hostProcess says what follows: Ignore, Audit, Warn or Deny. Any other value denies. Nothing follows for
#   service accounts that the parameter hostProcessAllowed names.
# custom:
#   code: PG005
#   severity: high
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg005
#   remedy: >-
#     Run the container without windowsOptions.hostProcess. If it must, list its namespace and service account in
#     hostProcessAllowed.
findings contains {"code": "PG005", "effect": host_process_effect, "field": field_of(container)} if {
	some container in input.containers
	not container.hostProcess == false
	not host_process_allowed
	host_process_effect != "none"
}

default host_process_effect := "deny"

host_process_effect := host_process_effects[parameters.hostProcess]

host_process_effects := {"Ignore": "none", "Audit": "audit", "Warn": "warn", "Deny": "deny"}

# A namespace alone is never enough: whoever may create a pod in it would have its nodes. An entry that says anything else
# beside names allows none.
host_process_allowed if {
	parameters_valid
	input.namespace != ""
	input.serviceAccount != ""
	entry := parameters.hostProcessAllowed[input.namespace]
	is_array(entry.serviceAccounts)
	count(entry) == 1
	input.serviceAccount in entry.serviceAccounts
}
