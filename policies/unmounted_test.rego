package pipeguard.admission_test

import data.pipeguard.admission

test_a_declared_pipe_is_refused[requirement] if {
	some requirement in ["PrivilegedOrAllowedNamespace", "PrivilegedAndAllowedNamespace", "AllowedNamespace", "", null]
	admission.decision == {"allowed": false, "findings": undeclared} with input as declaring(volume)
		with data.pipeguard.parameters as requiring(requirement)
}

test_a_privileged_container_does_not_excuse_it if {
	candidate := object.union(declaring(volume), {"containers": [privileged_container]})
	admission.findings == undeclared with input as candidate with data.pipeguard.parameters as parameters
}

test_a_persistent_volume_is_refused if {
	candidate := object.union(declaring(volume), {"namespace": "", "serviceAccount": "", "containers": []})
	admission.findings == undeclared with input as candidate with data.pipeguard.parameters as parameters
}

test_only_false_is_unguarded_in_a_declaration[value] if {
	some value in ["false", "", 0, null]
	entry := object.union(volume, {"guarded": value})
	admission.findings == undeclared with input as declaring(entry) with data.pipeguard.parameters as parameters
}

test_unusable_parameters_refuse_a_declaration if {
	every bad in unusable {
		candidate := object.union(driver_pod, {"mounts": [], "unmounted": [volume]})
		not admission.allowed with input as candidate with data.pipeguard.parameters as bad
	}
}

test_an_allowed_namespace_may_declare if {
	candidate := object.union(driver_pod, {"unmounted": [volume]})
	admission.decision == {"allowed": true, "findings": set()} with input as candidate with data.pipeguard.parameters as parameters
}

test_a_declared_path_that_names_no_single_pipe_is_said_once if {
	entry := replaced(volume, {"neverAllowed": true})
	codes(admission.findings) == {"PG003"} with input as declaring(entry) with data.pipeguard.parameters as parameters
	codes(admission.findings) == {"PG003"} with input as declaring_governed({"access": nobody, "neverAllowed": true})
		with data.pipeguard.parameters as parameters
}

test_other_pipes_may_be_declared if {
	entry := object.union(volume, {"guarded": false})
	admission.allowed with input as declaring(entry) with data.pipeguard.parameters as parameters
}

test_the_parameters_do_not_permit_the_declaration_of_what_a_policy_governs if {
	admission.findings == undeclared with input as declaring_governed({"access": nobody})
		with data.pipeguard.parameters as parameters
}

test_that_privileged_suffices_does_not_permit_a_declaration if {
	admission.findings == undeclared with input as declaring_governed({"access": nobody_with({"privilegedSuffices": true}), "privileged": true})
		with data.pipeguard.parameters as parameters
}

test_a_subjects_service_account_may_declare[requirement] if {
	some requirement in ["AllowedNamespace", "PrivilegedAndAllowedNamespace", "PrivilegedOrAllowedNamespace"]
	said := access_with({"subjects": [replaced(subject, {"requirement": requirement})]})
	admission.decision == {"allowed": true, "findings": set()} with input as replaced(declaring_governed({"access": said}), {"namespace": "shop"})
		with data.pipeguard.parameters as parameters
}

test_a_subject_of_what_nobody_governs_may_not_declare if {
	admission.findings == undeclared with input as replaced(declaring_governed({"policies": []}), {"namespace": "shop"})
		with data.pipeguard.parameters as parameters
}

test_the_action_decides_what_follows_for_a_declaration[action] if {
	some action, effect in {"Deny": "deny", "Warn": "warn", "Audit": "audit"}
	{finding.effect | some finding in admission.findings} == {effect} with input as declaring_governed({"access": nobody_with({"action": action})})
		with data.pipeguard.parameters as parameters
}

test_a_declaration_whose_subjects_cannot_be_read_is_refused if {
	every subjects in [null, "x", {"csi": subject}, [null], ["x"], [{}], [replaced(subject, {"requirement": "x"})]] {
		admission.findings == undeclared with input as declaring_governed({"access": access_with({"subjects": subjects})})
			with data.pipeguard.parameters as parameters
	}
}

test_a_declaration_without_policies_is_refused if {
	admission.findings == undeclared with input as replaced(driver_pod, {"mounts": [], "unmounted": [object.remove(volume, {"policies"})]})
		with data.pipeguard.parameters as parameters
}

test_the_action_of_the_parameters_decides_what_follows_where_no_policy_governs[action] if {
	some action, effect in effects_of_actions
	{finding.effect | some finding in admission.findings} == {effect} with input as declaring(volume) with data.pipeguard.parameters as acting(action, "Deny")
}
