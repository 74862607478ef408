package pipeguard.admission_test

import data.pipeguard.admission

privileged_pod := object.union(with_mount(privileged_mount), {"containers": [privileged_container]})

test_privileged_alone_is_admitted_with_a_warning if {
	admission.decision == {
		"allowed": true,
		"findings": {{"code": "PG004", "effect": "warn", "field": "spec.containers[0]"}},
	} with input as privileged_pod with data.pipeguard.parameters as parameters
}

test_many_mounts_of_one_container_are_one_warning if {
	candidate := object.union(privileged_pod, {"mounts": [privileged_mount, object.union(privileged_mount, {"pipe": "csi-proxy-smb-v1"})]})
	count(admission.findings) == 1 with input as candidate with data.pipeguard.parameters as parameters
}

test_an_allowed_namespace_needs_no_warning if {
	candidate := object.union(driver_pod, {"containers": [privileged_container], "mounts": [privileged_mount]})
	admission.findings == set() with input as candidate with data.pipeguard.parameters as parameters
}

test_a_refused_mount_is_not_warned_about_as_well[requirement] if {
	some requirement in ["PrivilegedAndAllowedNamespace", "AllowedNamespace", "x"]
	codes(admission.findings) == {"PG001"} with input as privileged_pod with data.pipeguard.parameters as requiring(requirement)
}

test_a_privileged_container_without_a_pipe_is_not_warned_about if {
	candidate := object.union(pod, {"containers": [privileged_container]})
	admission.findings == set() with input as candidate with data.pipeguard.parameters as parameters
}

test_an_init_container_of_the_same_name_is_not_meant if {
	candidate := object.union(privileged_pod, {"containers": [object.union(privileged_container, {"type": "initContainer"})]})
	admission.findings == set() with input as candidate with data.pipeguard.parameters as parameters
}

test_an_unprivileged_container_of_another_name_is_not_meant if {
	candidate := object.union(privileged_pod, {"containers": [object.union(privileged_container, {"name": "other"})]})
	admission.findings == set() with input as candidate with data.pipeguard.parameters as parameters
}

test_a_mount_of_which_nobody_says_that_it_is_guarded_is_warned_about if {
	candidate := object.union(privileged_pod, {"mounts": [object.remove(privileged_mount, ["guarded"])]})
	codes(admission.findings) == {"PG004"} with input as candidate with data.pipeguard.parameters as parameters
}

# A privileged container is enough for every policy that governs the pipe.
enough := nobody_with({"privilegedSuffices": true})

privileged_with(changes) := replaced(privileged_pod, {"mounts": [replaced(privileged_mount, object.union({"policies": ["csi"]}, changes))]})

test_privileged_alone_passes_where_every_governing_policy_says_so if {
	admission.decision == {
		"allowed": true,
		"findings": {{"code": "PG004", "effect": "warn", "field": "spec.containers[0]"}},
	} with input as privileged_with({"access": enough}) with data.pipeguard.parameters as requiring("AllowedNamespace")
}

test_where_one_of_them_asks_for_more_it_is_refused if {
	codes(admission.findings) == {"PG010"} with input as privileged_with({"access": nobody}) with data.pipeguard.parameters as parameters
}

test_a_subject_needs_no_warning[requirement] if {
	some requirement in ["AllowedNamespace", "PrivilegedAndAllowedNamespace", "PrivilegedOrAllowedNamespace"]
	said := replaced(enough, {"subjects": [replaced(subject, {"requirement": requirement})]})
	admission.findings == set() with input as privileged_with({"access": said}) with data.pipeguard.parameters as parameters
}

test_what_the_parameters_say_of_the_ungoverned_needs_a_warning_whatever_access_says if {
	every said in [access, nobody, lenient, null] {
		codes(admission.findings) == {"PG004"} with input as privileged_with({"policies": [], "access": said})
			with data.pipeguard.parameters as parameters
	}
	codes(admission.findings) == {"PG001"} with input as privileged_with({"policies": [], "access": enough})
		with data.pipeguard.parameters as requiring("AllowedNamespace")
}

test_only_true_is_privileged_where_a_policy_is_content_with_it[value] if {
	some value in ["true", "", 1, null, ["true"], "True"]
	codes(admission.findings) == {"PG010"} with input as privileged_with({"access": enough, "privileged": value})
		with data.pipeguard.parameters as parameters
}

test_a_governed_mount_that_is_refused_is_not_warned_about_as_well if {
	every changes in [{"neverAllowed": true}, {"guarded": false}] {
		not "PG004" in codes(admission.findings) with input as privileged_with(object.union({"access": enough}, changes))
			with data.pipeguard.parameters as parameters
	}
}
