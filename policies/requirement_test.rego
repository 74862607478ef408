package pipeguard.admission_test

import data.pipeguard.admission

# Guarded mounts of every standing, in and out of the allowed namespace.
guarded contains object.union(place, {"mounts": [mount]}) if {
	some place in [pod, driver_pod]
	some mount in [plain_mount, privileged_mount]
}

test_there_are_unusable_parameters if count(unusable) == 49

test_unusable_parameters_refuse_whatever_is_guarded if {
	every bad in unusable {
		every candidate in guarded {
			decision := admission.decision with input as candidate with data.pipeguard.parameters as bad
			decision.allowed == false
			"PG001" in codes(decision.findings)
		}
	}
}

test_null_namespaces_are_none if {
	none := allowing(null)
	admission.parameters_valid with data.pipeguard.parameters as none
	not admission.allowed with input as driver_pod with data.pipeguard.parameters as none
}

open_entries := [null, {}, {"serviceAccounts": null}, {"serviceAccounts": []}]

test_an_entry_without_condition_allows_every_service_account[entry] if {
	some entry in open_entries
	open := allowing({"kube-system": entry})
	candidate := object.union(driver_pod, {"serviceAccount": "anyone"})
	admission.allowed with input as candidate with data.pipeguard.parameters as open
}

test_an_entry_without_condition_does_not_allow_an_object_without_service_account[entry] if {
	some entry in open_entries
	open := allowing({"kube-system": entry})
	candidate := object.union(driver_pod, {"serviceAccount": ""})
	not admission.allowed with input as candidate with data.pipeguard.parameters as open
}

test_a_condition_that_cannot_be_evaluated_is_a_no[entry] if {
	some entry in [
		"csi-azuredisk-node-sa",
		["csi-azuredisk-node-sa"],
		true,
		1,
		{"serviceAccount": ["csi-azuredisk-node-sa"]},
		{"serviceAccounts": "csi-azuredisk-node-sa"},
		{"serviceAccounts": true},
		{"serviceAccounts": {"a": "csi-azuredisk-node-sa"}},
		{"serviceAccounts": [["csi-azuredisk-node-sa"]]},
		{"serviceAccounts": ["CSI-azuredisk-node-sa", "csi-azuredisk-node", "*", ""]},
		{"serviceAccounts": ["csi-azuredisk-node-sa"], "images": ["a"]},
	]
	conditional := allowing({"kube-system": entry})
	not admission.allowed with input as driver_pod with data.pipeguard.parameters as conditional
}

test_an_empty_name_is_in_no_list if {
	empty := allowing({"": null, "kube-system": {"serviceAccounts": [""]}})
	not admission.allowed with input as object.union(driver_pod, {"namespace": ""}) with data.pipeguard.parameters as empty
	not admission.allowed with input as object.union(driver_pod, {"serviceAccount": ""}) with data.pipeguard.parameters as empty
}

test_a_namespace_with_a_similar_name_is_not_allowed[namespace] if {
	some namespace in ["kube-system-2", "kube", "KUBE-SYSTEM", " kube-system", "*", "default"]
	not admission.allowed with input as object.union(driver_pod, {"namespace": namespace})
		with data.pipeguard.parameters as parameters
}

test_another_service_account_of_an_allowed_namespace_is_not_allowed if {
	not admission.allowed with input as object.union(driver_pod, {"serviceAccount": "default"})
		with data.pipeguard.parameters as parameters
}
