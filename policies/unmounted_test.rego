package pipeguard.admission_test

import data.pipeguard.admission

declaring(entry) := object.union(pod, {"unmounted": [entry]})

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
