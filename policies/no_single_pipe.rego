package pipeguard.admission

# METADATA
# title: A path does not name a single pipe
# description: >-
#   The path is malformed, or names the pipe root or a directory above it. It may give access to every pipe,
#   so neither a privileged container nor an allowed namespace may mount it.
# custom:
#   code: PG003
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg003
#   remedy: Name the one pipe that is needed, as in \\.\pipe\csi-proxy-filesystem-v1.
findings contains {"code": "PG003", "effect": "deny", "field": field_of(entry)} if {
	some list in [input.mounts, input.unmounted, input.persistentVolumes]
	some entry in list
	not entry.neverAllowed == false
}
