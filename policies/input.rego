package pipeguard.admission

# METADATA
# title: The input has a schema that these policies do not know
# description: >-
#   The input has another schema version, or a part that the rules read is missing or has the wrong type.
#   A rule cannot find what it cannot read, so the object is refused.
# custom:
#   code: PG000
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg000
#   remedy: Run the webhook and the policies of the same release.
findings contains {"code": "PG000", "effect": "deny"} if not well_formed

well_formed if {
	input.schema == "pipeguard.dev/admission/v1"
	is_string(input.namespace)
	is_string(input.serviceAccount)
	is_object(input.annotations)
	is_object(input.pod.annotations)
	is_string(input.pod.field)
	is_array(input.containers)
	is_array(input.mounts)
	is_array(input.unmounted)
	is_array(input.persistentVolumes)
}
