package pipeguard.admission_test

import data.pipeguard.admission

test_a_pod_without_pipes_is_allowed if {
	admission.decision == {"allowed": true, "findings": set()} with input as pod
		with data.pipeguard.parameters as parameters
}

test_a_driver_pod_is_allowed if {
	admission.decision == {"allowed": true, "findings": set()} with input as driver_pod
		with data.pipeguard.parameters as parameters
}

test_a_finding_that_denies_refuses if {
	not admission.allowed with admission.findings as {{"code": "X1", "effect": "deny"}}
}

test_one_denial_among_warnings_refuses if {
	not admission.allowed with admission.findings as {
		{"code": "X1", "effect": "warn"},
		{"code": "X2", "effect": "deny"},
	}
}

test_an_unknown_effect_refuses[effect] if {
	some effect in ["", "Deny", "Warn", "warning", "none", "DENY", 1, null, true, ["warn"]]
	not admission.allowed with admission.findings as {{"code": "X1", "effect": effect}}
}

test_a_finding_without_effect_refuses if {
	not admission.allowed with admission.findings as {{"code": "X1"}}
}

test_a_finding_that_is_no_object_refuses if {
	not admission.allowed with admission.findings as {"warn"}
}

test_warnings_and_audits_let_pass if {
	admission.allowed with admission.findings as {
		{"code": "X1", "effect": "warn"},
		{"code": "X2", "effect": "audit"},
	}
}

test_no_input_is_refused if {
	not admission.allowed with input as {} with data.pipeguard.parameters as parameters
}

test_an_entry_without_a_field_still_makes_a_finding[field] if {
	some field in [null, 7, ["spec"]]
	mount := object.union(plain_mount, {"field": field})
	admission.findings == {{"code": "PG001", "effect": "deny", "field": ""}} with input as with_mount(mount)
		with data.pipeguard.parameters as parameters
}

test_an_entry_whose_field_is_missing_still_makes_a_finding if {
	admission.findings == {{"code": "PG001", "effect": "deny", "field": ""}} with input as with_mount(object.remove(plain_mount, {"field"}))
		with data.pipeguard.parameters as parameters
}
