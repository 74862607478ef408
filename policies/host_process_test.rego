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

installer_pod := object.union(host_process_pod, {"namespace": "nodes", "serviceAccount": "installer"})

host_processes_of(entry) := object.union(handling("Deny"), {"hostProcessAllowed": {"nodes": entry}})

test_a_service_account_that_is_named_is_left_alone if {
	admission.findings == set() with input as installer_pod
		with data.pipeguard.parameters as host_processes_of({"serviceAccounts": ["other", "installer"]})
}

test_others_are_denied_as_before[candidate] if {
	some change in [
		{"namespace": "shop"},
		{"namespace": ""},
		{"serviceAccount": "default"},
		{"serviceAccount": ""},
	]
	candidate := object.union(installer_pod, change)
	not admission.allowed with input as candidate
		with data.pipeguard.parameters as object.union(handling("Deny"), {"hostProcessAllowed": {
			"nodes": {"serviceAccounts": ["installer"]},
			"": {"serviceAccounts": ["installer"]},
		}})
}

test_an_empty_name_is_no_service_account if {
	not admission.allowed with input as object.union(installer_pod, {"serviceAccount": ""})
		with data.pipeguard.parameters as host_processes_of({"serviceAccounts": [""]})
}

test_an_entry_that_names_nobody_allows_nobody[entry] if {
	some entry in [
		null, {}, true, "installer", ["installer"],
		{"serviceAccounts": null}, {"serviceAccounts": []}, {"serviceAccounts": "installer"}, {"serviceAccounts": {"a": "installer"}},
		{"serviceAccounts": ["*"]}, {"serviceaccounts": ["installer"]},
		{"serviceAccounts": ["installer"], "containers": ["x"]},
	]
	not admission.allowed with input as installer_pod with data.pipeguard.parameters as host_processes_of(entry)
}

test_parameters_that_are_not_valid_allow_nobody if {
	not admission.allowed with input as installer_pod
		with data.pipeguard.parameters as object.union(host_processes_of({"serviceAccounts": ["installer"]}), {"hostProcess": "deny"})
}

test_annotations_and_pipes_are_not_lifted[code] if {
	some code, change in {
		"PG006": {"pod": {"annotations": {"microsoft.com/hostprocess-inherit-user": "true"}}},
		"PG001": {"mounts": [plain_mount]},
	}
	some finding in admission.findings with input as object.union(installer_pod, change)
		with data.pipeguard.parameters as host_processes_of({"serviceAccounts": ["installer"]})
	finding.code == code
}
