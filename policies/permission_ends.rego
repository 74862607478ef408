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
	some name in mount.policies
	name in ending_policies
	not mount.guarded == false
	mount.neverAllowed == false
	subjects := subjects_of(mount.policies, mount.container, mount.image, mount.privileged)
	every subject in subjects {
		not lasts(subject)
	}
	not stays_privileged(mount)
}

# Most policies permit without an end; for the others it is worth to look at each mount.
ending_policies := {name |
	some name in {name | some mount in input.mounts; some name in mount.policies}
	some subject in open_subjects[name]
	not lasts(subject)
}

lasts(subject) if subject.warnFrom == ""

lasts(subject) if before(input.now, subject.warnFrom)

# When the subjects are gone, being privileged is still enough.
stays_privileged(mount) if {
	mount.privileged == true
	privilege_governs(mount.policies)
}
