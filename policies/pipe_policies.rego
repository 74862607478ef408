package pipeguard.admission

import data.pipeguard.policies

# What PipePolicies say about the pipes that they govern. An entry of the input names them in `policies`; each fact
# below is found once for an object, because the values of functions and keys are remembered for their operands.

# A policy that cannot be read wholly permits nobody and excuses nothing.
sound contains name if {
	policy := policies[name]
	policy.action in {"Deny", "Warn", "Audit"}
	policy.requirement in {"AllowedNamespace", "PrivilegedAndAllowedNamespace", "PrivilegedOrAllowedNamespace"}
	is_object(policy.subjects)
	is_array(object.get(policy.subjects, input.namespace, []))
}

# One name without sound data among several spoils them all: what that policy would have asked is not known.
all_sound(names) if {
	parameters_valid
	is_array(names)
	every name in names {
		sound[name]
	}
}

# The subjects of a policy that the pod belongs to and whose permission has not ended. An object without namespace
# (a PersistentVolume) or without service account is nobody's.
open_subjects[name] := subjects if {
	input.namespace != ""
	input.serviceAccount != ""
	list := policies[name].subjects[input.namespace]
	subjects := [subject |
		some subject in list
		fits(subject.serviceAccounts, input.serviceAccount)
		is_open(subject)
	]
}

is_open(subject) if subject.expiresAt == ""

is_open(subject) if before(input.now, subject.expiresAt)

# Times of one form are compared as strings. A time of another form is neither before nor after anything.
before(a, b) if {
	is_time(a)
	is_time(b)
	a < b
}

is_time(s) if {
	is_string(s)
	regex.match(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$`, s)
}

# An empty list leaves the question open; a list that is none, or is not there, answers it with no.
fits(list, _) if list == []

fits(list, value) if {
	is_array(list)
	value in list
}

image_fits(list, image) if fits(list, image)

image_fits(list, image) if {
	is_array(list)
	some pattern in list
	is_string(pattern)
	endswith(pattern, "*")
	prefix := trim_suffix(pattern, "*")
	contains(prefix, "/") # else the pattern names no registry and no repository
	startswith(image, prefix)
}

# The subjects that a container is, of all policies that govern a pipe; undefined if it is none.
subjects_of(names, container, image, privileged) := subjects if {
	is_string(container)
	is_string(image)
	subjects := [subject |
		some name in names
		some subject in open_subjects[name]
		privilege_fits(policies[name].requirement, privileged)
		fits(subject.containers, container)
		image_fits(subject.images, image)
	]
	subjects != []
	all_sound(names)
}

privilege_fits(requirement, _) if requirement in {"AllowedNamespace", "PrivilegedOrAllowedNamespace"}

privilege_fits("PrivilegedAndAllowedNamespace", privileged) if privileged == true

# Being privileged is enough only if no governing policy asks for more.
privilege_governs(names) if {
	{policies[name].requirement | some name in names} == {"PrivilegedOrAllowedNamespace"}
	all_sound(names)
}

# On what the permission of a container to mount a governed pipe rests.
default standing(_, _, _, _) := "none"

standing(names, container, image, privileged) := "subject" if {
	subjects_of(names, container, image, privileged)
} else := "privileged" if {
	privileged == true
	privilege_governs(names)
}

# What follows where nobody permits. The strictest of the governing policies decides; where none governs, or one of them
# cannot be read, it is a denial.
default effect_of(_) := "deny"

effect_of(entry) := action_effect(entry.policies)

default action_effect(_) := "deny"

action_effect(names) := "warn" if {
	actions(names) in {{"Warn"}, {"Audit", "Warn"}}
	all_sound(names)
} else := "audit" if {
	actions(names) == {"Audit"}
	all_sound(names)
}

actions(names) := {policies[name].action | some name in names}
