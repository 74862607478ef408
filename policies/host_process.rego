package pipeguard.admission

import data.pipeguard.parameters

# METADATA
# title: A HostProcess container reaches every pipe of its node
# description: >-
#   It runs on the node itself and opens pipes without a mount, so that only the node can tell which ones.
#   The parameter hostProcess sets the effect: Ignore, Audit, Warn or Deny. Any other value denies. Subjects of PipePolicies
#   that permit it are exempt, and so are the service accounts that the parameter hostProcessAllowed names.
# custom:
#   code: PG005
#   severity: high
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg005
#   remedy: >-
#     Run the container without windowsOptions.hostProcess. If it must, make it a subject of a PipePolicy with hostProcess.
findings contains {"code": "PG005", "effect": host_process_effect, "field": field_of(container)} if {
	some container in input.containers
	not container.hostProcess == false
	host_subjects(container) == []
	host_process_effect != "none"
}

default host_process_effect := "deny"

host_process_effect := effects_of_host_actions[parameters.hostProcess]
