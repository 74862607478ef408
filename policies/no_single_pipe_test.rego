package pipeguard.admission_test

import data.pipeguard.admission

test_a_path_that_names_no_single_pipe_is_refused_everywhere if {
	every place in [pod, driver_pod] {
		every mount in [never_mount, object.union(never_mount, {"privileged": true})] {
			every requirement in ["PrivilegedOrAllowedNamespace", "PrivilegedAndAllowedNamespace", "AllowedNamespace"] {
				candidate := object.union(place, {"mounts": [mount]})
				"PG003" in codes(admission.findings) with input as candidate with data.pipeguard.parameters as requiring(requirement)
				not admission.allowed with input as candidate with data.pipeguard.parameters as requiring(requirement)
			}
		}
	}
}

test_it_is_named_once if {
	admission.findings == {{"code": "PG003", "effect": "deny", "field": "spec.containers[0].volumeMounts[0]"}} with input as with_mount(never_mount)
		with data.pipeguard.parameters as parameters
}

test_a_declared_path_that_names_no_single_pipe_is_refused_in_an_allowed_namespace if {
	candidate := object.union(driver_pod, {"mounts": [], "unmounted": [object.union(volume, {"neverAllowed": true})]})
	admission.findings == {{"code": "PG003", "effect": "deny", "field": "spec.volumes[0].hostPath.path"}} with input as candidate
		with data.pipeguard.parameters as parameters
}

test_a_persistent_volume_that_names_no_single_pipe_is_refused[value] if {
	some value in [true, null, "false", 0]
	admission.findings == {{"code": "PG003", "effect": "deny", "field": "spec.hostPath.path"}} with input as with_volume(replaced(persistent_volume, {"neverAllowed": value}))
		with data.pipeguard.parameters as parameters
}

test_no_lenient_policy_lifts_it[list] if {
	some list, entry in {"mounts": never_mount, "unmounted": replaced(volume, {"neverAllowed": true}), "persistentVolumes": replaced(persistent_volume, {"neverAllowed": true})}
	findings := admission.findings with input as replaced(governed_pod, {"mounts": [], list: [replaced(entry, {"policies": ["csi"], "access": lenient})]})
		with data.pipeguard.parameters as parameters
	{[finding.code, finding.effect] | some finding in findings} == {["PG003", "deny"]}
}

test_what_is_not_said_to_be_allowable_never_is[value] if {
	some value in [null, "false", "", 0, []]
	candidate := object.union(driver_pod, {"mounts": [object.union(plain_mount, {"neverAllowed": value})]})
	not admission.allowed with input as candidate with data.pipeguard.parameters as parameters
}

test_a_mount_that_does_not_say_is_refused if {
	candidate := object.union(driver_pod, {"mounts": [object.remove(plain_mount, {"neverAllowed"})]})
	not admission.allowed with input as candidate with data.pipeguard.parameters as parameters
}

test_an_entry_that_is_no_object_is_refused[entry] if {
	some entry in [null, "x", 1, true, [], {}]
	not admission.allowed with input as object.union(driver_pod, {"mounts": [entry]}) with data.pipeguard.parameters as parameters
	not admission.allowed with input as object.union(driver_pod, {"unmounted": [entry]}) with data.pipeguard.parameters as parameters
}

test_a_guard_that_says_no_match_does_not_lift_it if {
	candidate := object.union(driver_pod, {"mounts": [object.union(never_mount, {"guarded": false})]})
	not admission.allowed with input as candidate with data.pipeguard.parameters as parameters
}

test_a_path_that_names_one_pipe_has_no_such_finding if {
	not "PG003" in codes(admission.findings) with input as with_mount(plain_mount) with data.pipeguard.parameters as parameters
}

# A path that may lead to any pipe, and is not the directory of all pipes as canaries spell it.
lead := replaced(never_mount, {"path": `\\.\pipe`})

test_the_strictest_action_decides_what_follows_for_a_lead[action] if {
	some action, effect in effects_of_actions
	every list, entry in leads {
		findings := admission.findings with input as object.union(pod, {list: [entry]}) with data.pipeguard.parameters as acting("Deny", action)
		{[finding.code, finding.effect] | some finding in findings} == {["PG003", effect]}
	}
}

leads := {"mounts": lead, "unmounted": replaced(volume, {"path": "C:", "neverAllowed": true}), "persistentVolumes": replaced(persistent_volume, {"path": "/", "neverAllowed": true})}

test_no_action_lifts_the_directory_of_all_pipes[list] if {
	some list, entry in leads
	not admission.allowed with input as object.union(pod, {list: [replaced(entry, {"path": `\\.\pipe\`})]}) with data.pipeguard.parameters as acting("Audit", "Audit")
}

test_a_strictest_action_that_is_missing_or_not_known_refuses_a_lead if {
	not admission.allowed with input as with_mount(lead) with data.pipeguard.parameters as object.remove(acting("Audit", "Audit"), {"strictestAction"})
	every action in odd_actions {
		not admission.allowed with input as with_mount(lead) with data.pipeguard.parameters as acting("Audit", action)
	}
}

test_no_action_lifts_a_lead_under_parameters_that_are_not_valid if {
	every bad in lenient_but_unusable {
		not admission.allowed with input as with_mount(lead) with data.pipeguard.parameters as bad
	}
}

test_no_action_lifts_what_is_not_said_to_be_a_lead if {
	every changes in [{"neverAllowed": null}, {"neverAllowed": "true"}, {"path": null}, {"path": [lead.path]}] {
		not admission.allowed with input as with_mount(replaced(lead, changes)) with data.pipeguard.parameters as acting("Audit", "Audit")
	}
	not admission.allowed with input as with_mount(object.remove(lead, {"path"})) with data.pipeguard.parameters as acting("Audit", "Audit")
}
