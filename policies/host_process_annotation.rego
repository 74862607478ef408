package pipeguard.admission

# METADATA
# title: An annotation makes or widens a HostProcess container
# description: >-
#   Container runtimes read microsoft.com/hostprocess-* annotations: they turn a container into a HostProcess container,
#   let it inherit the user of the runtime, or move its root file system. The verdict is that of HostProcess containers.
# custom:
#   code: PG006
#   severity: high
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg006
#   remedy: Remove the annotation.
findings contains {
	"code": "PG006",
	"effect": host_process_effect,
	"field": concat("", [input.pod.field, ".annotations[", key, "]"]),
} if {
	is_object(input.pod.annotations) # otherwise the keys are not strings
	some key, _ in input.pod.annotations
	startswith(lower(key), "microsoft.com/hostprocess")
	host_process_effect != "none"
}
