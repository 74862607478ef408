package pipeguard.admission_test

import data.pipeguard.admission

undeclared := {{"code": "PG002", "effect": "deny", "field": "spec.volumes[0].hostPath.path"}}

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

test_other_pipes_may_be_declared if {
	entry := object.union(volume, {"guarded": false})
	admission.allowed with input as declaring(entry) with data.pipeguard.parameters as parameters
}

governed_volume := replaced(volume, {"policies": ["csi"]})

declaring_governed := replaced(governed_pod, {"mounts": [], "unmounted": [governed_volume]})

test_the_parameters_do_not_permit_the_declaration_of_what_a_policy_governs if {
	admission.findings == undeclared with input as declaring_governed
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policy_with({"subjects": {}})
}

test_a_subjects_service_account_may_declare if {
	policies := subject_with({"containers": ["other"], "images": ["other/image"]})
	admission.decision == {"allowed": true, "findings": set()} with input as declaring_governed
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policies
}

test_who_is_no_open_subject_may_not_declare[changes] if {
	some changes in [{"serviceAccounts": ["other"]}, {"expiresAt": "2026-01-02T03:04:05Z"}, {"expiresAt": "2999"}, {"serviceAccounts": null}]
	admission.findings == undeclared with input as declaring_governed
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with(changes)
}

test_one_unsound_policy_forbids_the_declaration if {
	every names in [["csi", "gone"], ["gone", "csi"], ["gone"], [], null, "csi", {"a": "csi"}] {
		admission.findings == undeclared with input as replaced(declaring_governed, {"namespace": "shop", "unmounted": [replaced(volume, {"policies": names})]})
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as policy_with({"action": "Audit", "subjects": {"shop": [subject]}})
	}
}

test_a_declaration_without_policies_is_refused if {
	admission.findings == undeclared with input as replaced(driver_pod, {"mounts": [], "unmounted": [object.remove(volume, {"policies"})]})
		with data.pipeguard.parameters as parameters
}
