package pipeguard.node

# METADATA
# title: A volume would be formatted by a caller that is not named
# description: Formatting destroys the data of a volume.
# custom:
#   code: PN004
#   severity: high
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pn004
#   remedy: >-
#     If this is a driver of block volumes, spell out FormatVolume in a rule of the access list that names the driver; or in node.methods
#     of a PipePolicy.
findings contains {"code": "PN004", "effect": "deny"} if {
	input.group == "volume"
	input.operation == "FormatVolume"
	not is_named
}
