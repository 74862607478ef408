package pipeguard.admission

import data.pipeguard.parameters

# The decision of PipePolicies about the pipes that they govern. An entry of the input holds in `access` the strictest action, whether being
# privileged is enough, and the subjects that match the container. Subjects are matched before the policies are evaluated; this file holds the effects.

# Without names of policies, or with an unknown action, no container is permitted and the effect is deny.
governed(policies, access) if {
	parameters_valid
	names_policies(policies)
	effects_of_actions[access.action]
}

# Values sort by type: if the first and the last are strings, all are. It is one step, however many policies govern a pipe.
names_policies([name]) if is_string(name)

names_policies(list) if {
	is_array(list)
	count(list) > 1
	sorted := sort(list)
	is_string(sorted[0])
	is_string(sorted[count(sorted) - 1])
}

effects_of_actions := {"Deny": "deny", "Warn": "warn", "Audit": "audit"}

# The subjects whose requirement the container meets.
subjects_of(policies, access, privileged) := [subject |
	governed(policies, access)
	is_array(access.subjects)
	some subject in access.subjects
	privilege_fits(subject.requirement, privileged)
]

privilege_fits(requirement, _) if requirement in {"AllowedNamespace", "PrivilegedOrAllowedNamespace"}

privilege_fits("PrivilegedAndAllowedNamespace", privileged) if privileged == true

# Being privileged is enough only if no governing policy asks for more.
privilege_governs(policies, access, privileged) if {
	privileged == true
	access.privilegedSuffices == true
	governed(policies, access)
}

# The grounds on which a container may mount a governed pipe.
default standing(_, _, _) := "none"

standing(policies, access, privileged) := "subject" if {
	subjects_of(policies, access, privileged) != []
} else := "privileged" if {
	privilege_governs(policies, access, privileged)
}

# The subjects that permit a HostProcess container or a host path.
default host_subjects(_) := []

host_subjects(entry) := [subject |
	is_array(entry.access.subjects)
	some subject in entry.access.subjects
	is_string(subject.subject)
] if parameters_valid

# The entries with a path that reaches the host and is not, or may not be, that of a pipe: collected once, for rules that concern few entries.
host_entries := [entry |
	some list in [input.mounts, input.unmounted, input.persistentVolumes]
	some entry in list
	entry.guarded == false # otherwise other rules ask for more
	entry.neverAllowed == false
	not reaches_no_host(entry)
]

reaches_no_host(entry) if {
	entry.equalPower == ""
	entry.place == ""
}

# Subjects permit host paths as such. A PersistentVolume has no subjects, and the subjects of a pipe, a disk or a share permit no host path.
host_path_permitted(entry) if {
	entry.policies == []
	entry.equalPower in {"", "directory"}
	host_subjects(entry) != []
}

effects_of_host_actions := {"Ignore": "none", "Audit": "audit", "Warn": "warn", "Deny": "deny"}

# The effect where no subject permits.
default effect_of(_) := "deny"

effect_of(entry) := effects_of_actions[entry.access.action] if governed(entry.policies, entry.access)

# No policy governs the pipe. Without a known action of the parameters, the effect is deny.
effect_of(entry) := effects_of_actions[parameters.action] if {
	parameters_valid
	entry.policies == []
	entry.guarded == true
}
