package pipeguard.node

# METADATA
# title: A service of the node would be started or stopped by a caller that is not named
# description: >-
#   Whoever starts and stops services of Windows can stop what guards the node. No driver needs it for volumes of other
#   kinds than iSCSI and SMB.
# custom:
#   code: PN001
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pn001
#   remedy: >-
#     If this driver needs it, spell out the operation in a rule of the access list, beside the driver and the services that it
#     may control; or in node.methods of a PipePolicy.
findings contains {"code": "PN001", "effect": "deny"} if {
	input.group == "system"
	input.operation in {"StartService", "StopService"}
	not is_named
}
