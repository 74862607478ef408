package pipeguard.admission_test

import data.pipeguard.admission

malformed contains object.union(pod, {"schema": schema}) if {
	some schema in ["", "pipeguard.dev/admission/v2", "pipeguard.dev/admission/v1 ", null, 1, ["pipeguard.dev/admission/v1"]]
}

malformed contains object.remove(pod, {key}) if {
	some key in ["schema", "namespace", "serviceAccount", "annotations", "pod", "containers", "mounts", "unmounted", "persistentVolumes"]
}

malformed contains object.union(object.remove(pod, {key}), {key: value}) if {
	some key in ["containers", "mounts", "unmounted", "persistentVolumes"]
	some value in [null, "", "x", 0, true, {"a": plain_mount}]
}

malformed contains object.union(pod, {key: value}) if {
	some key in ["namespace", "serviceAccount"]
	some value in [null, 0, true, ["kube-system"]]
}

malformed contains object.union(object.remove(pod, {"annotations"}), {"annotations": value}) if {
	some value in [null, "x", 1, ["microsoft.com/hostprocess-container"]]
}

malformed contains replaced(pod, {"pod": value}) if some value in [null, "x", 1, [], {}, {"annotations": {}}, {"field": "metadata"}]

malformed contains replaced(pod, {"pod": replaced(pod.pod, {"annotations": value})}) if some value in [null, "x", 1, ["microsoft.com/hostprocess-container"]]

malformed contains replaced(pod, {"pod": replaced(pod.pod, {"field": value})}) if some value in [null, 1, ["metadata"]]

test_there_are_malformed_inputs if count(malformed) == 65

test_malformed_input_is_refused if {
	every bad in malformed {
		"PG000" in codes(admission.findings) with input as bad with data.pipeguard.parameters as parameters
		not admission.allowed with input as bad with data.pipeguard.parameters as parameters
	}
}

test_malformed_input_is_refused_in_an_allowed_namespace_too if {
	bad := object.union(driver_pod, {"schema": "pipeguard.dev/admission/v2"})
	not admission.allowed with input as bad with data.pipeguard.parameters as parameters
}

test_input_that_is_no_object_is_refused[bad] if {
	some bad in [null, "x", 1, true, [], [pod]]
	not admission.allowed with input as bad with data.pipeguard.parameters as parameters
}

test_input_of_the_schema_has_no_such_finding if {
	not "PG000" in codes(admission.findings) with input as pod with data.pipeguard.parameters as parameters
}
