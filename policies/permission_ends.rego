package pipeguard.admission

# METADATA
# title: The permission to mount a guarded pipe ends within seven days
# description: >-
#   Every subject of a PipePolicy that permits the mount has an end, and it is near. Pods that are made after it are refused.
# custom:
#   code: PG009
#   severity: low
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg009
#   remedy: Do without the pipe, or ask the owner of the PipePolicy to extend the subject's expiresAt.
advice contains {"code": "PG009", "effect": "warn", "field": field_of(mount)} if {
	some mount in input.mounts
	not mount.policies == []
	not mount.guarded == false
	mount.neverAllowed == false
	subjects := subjects_of(mount.policies, mount.access, mount.privileged)
	subjects != []
	every subject in subjects {
		not lasts(subject)
	}
	not privilege_governs(mount.policies, mount.access, mount.privileged) # else the permission stays when the subjects are gone
}

lasts(subject) if subject.warnFrom == ""

lasts(subject) if before(input.now, subject.warnFrom)
