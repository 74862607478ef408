package pipeguard.admission_test

import data.pipeguard.admission

host_process_pod := object.union(pod, {"containers": [plain_container, object.union(plain_container, {
	"name": "host",
	"hostProcess": true,
	"field": "spec.containers[1]",
})]})

test_a_host_process_container_is_denied_if_the_parameter_says_so if {
	admission.decision == {
		"allowed": false,
		"findings": {{"code": "PG005", "effect": "deny", "field": "spec.containers[1]"}},
	} with input as host_process_pod with data.pipeguard.parameters as handling("Deny")
}

test_an_allowed_namespace_does_not_lift_it if {
	candidate := object.union(driver_pod, {"containers": host_process_pod.containers})
	not admission.allowed with input as candidate with data.pipeguard.parameters as handling("Deny")
}

test_an_unknown_value_denies[value] if {
	some value in ["", "deny", "ignore", "Allow", null, true, 1, ["Ignore"], {"Ignore": true}]
	not admission.allowed with input as host_process_pod with data.pipeguard.parameters as handling(value)
}

test_no_value_denies if {
	not admission.allowed with input as host_process_pod
		with data.pipeguard.parameters as object.remove(parameters, {"hostProcess"})
}

test_no_parameters_deny if {
	not admission.allowed with input as host_process_pod with data.pipeguard.parameters as {}
}

test_only_false_is_no_host_process[value] if {
	some value in ["false", "", 0, null]
	candidate := object.union(pod, {"containers": [object.union(plain_container, {"hostProcess": value})]})
	not admission.allowed with input as candidate with data.pipeguard.parameters as handling("Deny")
}

test_a_container_that_does_not_say_is_one if {
	candidate := object.union(pod, {"containers": [object.remove(plain_container, {"hostProcess"})]})
	not admission.allowed with input as candidate with data.pipeguard.parameters as handling("Deny")
}

test_the_parameter_chooses_the_effect[value] if {
	some value, effect in {"Audit": "audit", "Warn": "warn"}
	admission.decision == {
		"allowed": true,
		"findings": {{"code": "PG005", "effect": effect, "field": "spec.containers[1]"}},
	} with input as host_process_pod with data.pipeguard.parameters as handling(value)
}

test_ignore_says_nothing if {
	admission.findings == set() with input as host_process_pod with data.pipeguard.parameters as handling("Ignore")
}

# A pod with a HostProcess container that is a subject with permission for it.
installer_pod := permitting({})

permitting(changes) := object.union(pod, {"containers": [plain_container, replaced(host_process_pod.containers[1], {"access": replaced(
	replaced(ungoverned, {"subjects": [subject]}),
	changes,
)})]})

host_process_denied := {{"code": "PG005", "effect": "deny", "field": "spec.containers[1]"}}

test_a_subject_that_permits_it_is_left_alone if {
	admission.findings == set() with input as installer_pod with data.pipeguard.parameters as handling("Deny")
}

test_what_is_no_list_of_subjects_permits_nobody[subjects] if {
	some subjects in [null, [], {}, "installer", true, {"a": subject}, {subject}, [null], ["installer"], [{}], [object.remove(subject, {"subject"})], [replaced(subject, {"subject": null})]]
	admission.findings == host_process_denied with input as permitting({"subjects": subjects}) with data.pipeguard.parameters as handling("Deny")
}

test_what_else_is_said_permits_nobody if {
	every candidate in [
		permitting({"subjects": [], "action": "Audit", "privilegedSuffices": true}),
		replaced(installer_pod, {"containers": [replaced(installer_pod.containers[1], {"access": null, "privileged": true, "runAsUserName": "x"})]}),
		replaced(installer_pod, {"containers": [object.remove(installer_pod.containers[1], {"access"})]}),
	] {
		admission.findings == host_process_denied with input as candidate with data.pipeguard.parameters as handling("Deny")
	}
}

test_another_container_beside_it_is_denied if {
	other := replaced(installer_pod.containers[1], {"access": ungoverned, "field": "spec.containers[2]"})
	candidate := replaced(installer_pod, {"containers": array.concat(installer_pod.containers, [other])})
	{finding.field | some finding in admission.findings} == {"spec.containers[2]"} with input as candidate
		with data.pipeguard.parameters as handling("Deny")
}

test_parameters_that_are_not_valid_permit_nobody if {
	every bad in unusable {
		"PG005" in codes(admission.findings) with input as installer_pod with data.pipeguard.parameters as bad
	}
}

test_annotations_and_pipes_are_not_lifted[code] if {
	some code, change in {
		"PG006": {"pod": {"annotations": {"microsoft.com/hostprocess-inherit-user": "true"}}},
		"PG001": {"mounts": [plain_mount]},
	}
	some finding in admission.findings with input as object.union(installer_pod, change)
		with data.pipeguard.parameters as handling("Deny")
	finding.code == code
}

test_a_host_process_permission_that_ends_soon_is_warned_about[value] if {
	some value, warned in {"Deny": {{"code": "PG009", "effect": "warn", "field": "spec.containers[1]"}}, "Ignore": set()}
	admission.advice == warned with input as permitting({"subjects": [expiring]}) with data.pipeguard.parameters as handling(value)
}

test_one_that_lasts_is_not if {
	every subjects in [[subject], [expiring, subject], []] {
		admission.advice == set() with input as permitting({"subjects": subjects}) with data.pipeguard.parameters as handling("Deny")
	}
}

test_what_is_no_host_process_container_needs_no_permission if {
	candidate := replaced(pod, {"containers": [replaced(plain_container, {"access": access_with({"subjects": [expiring]})})]})
	admission.advice == set() with input as candidate with data.pipeguard.parameters as handling("Deny")
}
