package pipeguard.admission_test

import data.pipeguard.admission

test_a_persistent_volume_that_leads_to_a_pipe_is_refused[requirement] if {
	some requirement in ["PrivilegedOrAllowedNamespace", "PrivilegedAndAllowedNamespace", "AllowedNamespace", "", null]
	admission.decision == {
		"allowed": false,
		"findings": {{"code": "PG007", "effect": "deny", "field": "spec.hostPath.path"}},
	} with input as with_volume(persistent_volume) with data.pipeguard.parameters as requiring(requirement)
}

test_no_namespace_and_no_subject_lifts_it if {
	every claim in [{"namespace": "kube-system", "name": "x"}, {"namespace": "", "name": ""}] {
		every changes in [{"policies": []}, {"access": access}, {"access": access_with({"privilegedSuffices": true}), "privileged": true}] {
			candidate := object.union(with_governed_volume(object.union(changes, {"claim": claim})), {
				"namespace": "kube-system",
				"serviceAccount": "csi-azuredisk-node-sa",
			})
			admission.decision == {"allowed": false, "findings": leading} with input as candidate
				with data.pipeguard.parameters as parameters
		}
	}
}

test_the_action_of_the_governing_policy_decides[action] if {
	some action, effect in {"Deny": "deny", "Warn": "warn", "Audit": "audit"}
	admission.findings == {{"code": "PG007", "effect": effect, "field": "spec.hostPath.path"}} with input as with_governed_volume({"access": nobody_with({"action": action})})
		with data.pipeguard.parameters as parameters
}

test_a_volume_that_does_not_say_who_governs_it_is_refused[value] if {
	some value in [null, "csi", {"a": "csi"}, {}, 0, []]
	every entry in [
		replaced(persistent_volume, {"policies": value, "access": lenient}),
		object.remove(replaced(persistent_volume, {"access": lenient}), {"policies"}),
	] {
		admission.findings == leading with input as with_volume(entry) with data.pipeguard.parameters as parameters
	}
}

test_only_false_is_unguarded_in_a_persistent_volume[value] if {
	some value in ["false", "", 0, null]
	every entry in [replaced(persistent_volume, {"guarded": value}), object.remove(persistent_volume, {"guarded"})] {
		codes(admission.findings) == {"PG007"} with input as with_volume(entry) with data.pipeguard.parameters as parameters
	}
}

test_a_volume_that_names_no_single_pipe_is_said_once if {
	entry := replaced(persistent_volume, {"neverAllowed": true, "kind": "pipe-root", "pipe": ""})
	codes(admission.findings) == {"PG003"} with input as with_volume(entry) with data.pipeguard.parameters as parameters
}

test_an_entry_of_volumes_that_is_no_object_is_refused[entry] if {
	some entry in [null, "x", 1, true, [], {}]
	not admission.allowed with input as with_volume(entry) with data.pipeguard.parameters as parameters
}

test_a_local_volume_is_judged_as_well if {
	entry := replaced(persistent_volume, {"type": "local", "field": "spec.local.path"})
	admission.findings == {{"code": "PG007", "effect": "deny", "field": "spec.local.path"}} with input as with_volume(entry)
		with data.pipeguard.parameters as parameters
}

test_other_volumes_are_not_judged if {
	entry := replaced(persistent_volume, {"guarded": false, "kind": "unc", "pipe": ""})
	admission.decision == {"allowed": true, "findings": set()} with input as with_volume(entry) with data.pipeguard.parameters as parameters
}

test_the_action_of_the_parameters_decides_about_a_pipe_that_no_policy_governs[action] if {
	some action, effect in effects_of_actions
	admission.findings == {{"code": "PG007", "effect": effect, "field": "spec.hostPath.path"}} with input as with_volume(persistent_volume)
		with data.pipeguard.parameters as acting(action, "Deny")
}

test_it_does_not_decide_about_a_pipe_that_a_policy_governs if {
	not admission.allowed with input as with_volume(replaced(persistent_volume, {"policies": ["csi"], "access": nobody})) with data.pipeguard.parameters as acting("Audit", "Audit")
}
