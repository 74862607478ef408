package pipeguard.admission

# METADATA
# title: A permission ends within seven days
# description: >-
#   Every subject of a PipePolicy that permits the mount of a guarded pipe, the HostProcess container or the host path expires
#   soon. Pods that are created afterwards are refused, or treated as the parameters hostProcess and hostPaths say.
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
	not privilege_governs(mount.policies, mount.access, mount.privileged) # otherwise the permission stays when the subjects have expired
}

advice contains {"code": "PG009", "effect": "warn", "field": field_of(container)} if {
	some container in input.containers
	not container.hostProcess == false
	host_process_effect != "none" # otherwise no permission ends
	host_permission_ends(container)
}

advice contains {"code": "PG009", "effect": "warn", "field": field_of(mount)} if {
	some mount in input.mounts
	mount.guarded == false # first, because most mounts that are looked at are of guarded pipes
	mount.neverAllowed == false
	host_path_permitted(mount)
	host_path_effect_of(mount) != "none" # otherwise no permission ends
	host_permission_ends(mount)
}

host_permission_ends(entry) if {
	subjects := host_subjects(entry)
	subjects != []
	every subject in subjects {
		not lasts(subject)
	}
}

host_path_effect_of(entry) := host_paths_effect if entry.equalPower == ""

host_path_effect_of(entry) := effect_of_power(entry) if not entry.equalPower == ""

lasts(subject) if subject.endsSoon == false
