package pipeguard.node

# METADATA
# title: A service of the node would be started or stopped by a caller that is not named
# description: >-
#   A caller that starts and stops Windows services can stop the services that guard the node. A driver needs it for iSCSI
#   and SMB volumes only.
# custom:
#   code: PN001
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pn001
#   remedy: >-
#     If this driver needs it, spell out the operation in a rule of the access list that names the driver and the services that it
#     may control; or in node.methods of a PipePolicy.
findings contains {"code": "PN001", "effect": "deny"} if {
	input.group == "system"
	input.operation in {"StartService", "StopService"}
	not is_named
}
