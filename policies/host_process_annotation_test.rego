package pipeguard.admission_test

import data.pipeguard.admission

annotated(key, value) := object.union(pod, {"pod": {"annotations": {"app": "web", key: value}}})

test_annotations_that_make_or_widen_a_host_process_are_denied[key] if {
	some key in [
		"microsoft.com/hostprocess-container",
		"microsoft.com/hostprocess-inherit-user",
		"microsoft.com/hostprocess-rootfs-location",
		"microsoft.com/hostprocess-of-the-future",
		"microsoft.com/HostProcess-container",
	]
	field := concat("", ["metadata.annotations[", key, "]"])
	admission.decision == {
		"allowed": false,
		"findings": {{"code": "PG006", "effect": "deny", "field": field}},
	} with input as annotated(key, "true") with data.pipeguard.parameters as handling("Deny")
}

test_the_annotations_of_a_template_are_judged_where_they_are if {
	candidate := object.union(annotated("microsoft.com/hostprocess-container", "true"), {"pod": {"field": "spec.template.metadata"}})
	admission.findings == {{
		"code": "PG006",
		"effect": "deny",
		"field": "spec.template.metadata.annotations[microsoft.com/hostprocess-container]",
	}} with input as candidate with data.pipeguard.parameters as handling("Deny")
}

test_annotations_of_the_workload_are_no_pods if {
	candidate := object.union(pod, {"annotations": {"microsoft.com/hostprocess-container": "true"}})
	admission.findings == set() with input as candidate with data.pipeguard.parameters as handling("Deny")
}

test_the_value_does_not_excuse_it[value] if {
	some value in ["false", "", "0", 1, null]
	not admission.allowed with input as annotated("microsoft.com/hostprocess-container", value)
		with data.pipeguard.parameters as handling("Deny")
}

test_an_unknown_parameter_denies_the_annotation if {
	not admission.allowed with input as annotated("microsoft.com/hostprocess-container", "true")
		with data.pipeguard.parameters as handling("Allow")
}

test_the_parameter_chooses_the_effect_of_the_annotation[value] if {
	some value, effect in {"Audit": "audit", "Warn": "warn"}
	{finding.effect | some finding in admission.findings} == {effect} with input as annotated("microsoft.com/hostprocess-container", "true")
		with data.pipeguard.parameters as handling(value)
}

test_ignore_says_nothing_of_the_annotation if {
	admission.findings == set() with input as annotated("microsoft.com/hostprocess-container", "true")
		with data.pipeguard.parameters as handling("Ignore")
}

test_other_annotations_are_not_judged[key] if {
	some key in ["microsoft.com/owner", "example.com/hostprocess-container", "hostprocess"]
	admission.findings == set() with input as annotated(key, "true") with data.pipeguard.parameters as handling("Deny")
}
