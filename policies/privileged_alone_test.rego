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

either := policy_with({"requirement": "PrivilegedOrAllowedNamespace"})

governed_privileged := object.union(privileged_pod, {"mounts": [object.union(privileged_mount, {"policies": ["csi"]})]})

test_privileged_alone_passes_where_every_governing_policy_says_so if {
	admission.decision == {
		"allowed": true,
		"findings": {{"code": "PG004", "effect": "warn", "field": "spec.containers[0]"}},
	} with input as governed_privileged with data.pipeguard.parameters as requiring("AllowedNamespace") with data.pipeguard.policies as either
}

test_one_governing_policy_that_asks_for_more_is_enough_to_refuse[requirement] if {
	some requirement in ["AllowedNamespace", "PrivilegedAndAllowedNamespace"]
	policies := object.union(either, {"more": replaced(pipe_policy, {"requirement": requirement, "subjects": {}})})
	every names in [["csi", "more"], ["more", "csi"], ["more"]] {
		codes(admission.findings) == {"PG010"} with input as replaced(governed_privileged, {"mounts": [replaced(privileged_mount, {"policies": names})]})
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as policies
	}
}

test_a_subject_needs_no_warning if {
	candidate := replaced(governed_pod, {"containers": [privileged_container], "mounts": [replaced(governed_mount, {"privileged": true})]})
	admission.findings == set() with input as candidate
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as either
}

test_the_parameters_do_not_speak_of_what_is_governed if {
	codes(admission.findings) == {"PG010"} with input as governed_privileged
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policy_with({"subjects": {}})
}

test_only_true_is_privileged_where_a_policy_is_content_with_it[value] if {
	some value in ["true", "", 1, null, ["true"], "True"]
	codes(admission.findings) == {"PG010"} with input as replaced(governed_privileged, {"mounts": [replaced(privileged_mount, {"policies": ["csi"], "privileged": value})]})
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as either
}
