package pipeguard.node

# METADATA
# title: A disk would be partitioned by a caller that is not named
# description: Partitioning takes a disk by its number, which does not tell whose disk it is.
# custom:
#   code: PN002
#   severity: high
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pn002
#   remedy: >-
#     If this is a driver of block volumes, spell out PartitionDisk in a rule of the access list that names the driver; or in node.methods
#     of a PipePolicy.
findings contains {"code": "PN002", "effect": "deny"} if {
	input.group == "disk"
	input.operation == "PartitionDisk"
	not is_named
}
