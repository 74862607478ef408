package pipeguard.node

# METADATA
# title: A disk would be taken offline by a caller that is not named
# description: >-
#   Taking a disk offline removes the volumes of all pods on it. Bringing a disk online is left to the access list.
# custom:
#   code: PN003
#   severity: high
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pn003
#   remedy: >-
#     If this is a driver of block volumes, spell out SetDiskState in a rule of the access list that names the driver; or in node.methods
#     of a PipePolicy.
findings contains {"code": "PN003", "effect": "deny"} if {
	input.group == "disk"
	input.operation == "SetDiskState"
	not input.request.is_online == true
	not is_named
}
