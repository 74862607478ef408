package pipeguard.admission_test

import data.pipeguard.admission

refusal := {{"code": "PG001", "effect": "deny", "field": "spec.containers[0].volumeMounts[0]"}}

test_a_plain_mount_in_another_namespace_is_refused[requirement] if {
	some requirement in ["PrivilegedOrAllowedNamespace", "PrivilegedAndAllowedNamespace", "AllowedNamespace"]
	admission.decision == {"allowed": false, "findings": refusal} with input as with_mount(plain_mount)
		with data.pipeguard.parameters as requiring(requirement)
}

test_being_privileged_is_not_enough_where_the_namespace_is_required[requirement] if {
	some requirement in ["PrivilegedAndAllowedNamespace", "AllowedNamespace"]
	admission.findings == refusal with input as with_mount(privileged_mount)
		with data.pipeguard.parameters as requiring(requirement)
}

test_an_allowed_namespace_is_not_enough_where_both_are_required if {
	admission.findings == refusal with input as driver_pod
		with data.pipeguard.parameters as requiring("PrivilegedAndAllowedNamespace")
}

test_only_true_is_privileged[value] if {
	some value in ["true", "", 1, null, ["true"], {"true": true}, "True"]
	mount := object.union(plain_mount, {"privileged": value})
	admission.findings == refusal with input as with_mount(mount) with data.pipeguard.parameters as parameters
}

test_a_mount_that_does_not_say_is_not_privileged if {
	mount := object.remove(plain_mount, {"privileged"})
	admission.findings == refusal with input as with_mount(mount) with data.pipeguard.parameters as parameters
}

test_only_false_is_unguarded[value] if {
	some value in ["false", "", 0, null, [], {}]
	mount := object.union(plain_mount, {"guarded": value})
	admission.findings == refusal with input as with_mount(mount) with data.pipeguard.parameters as parameters
}

test_a_mount_that_does_not_say_is_guarded if {
	mount := object.remove(plain_mount, {"guarded"})
	admission.findings == refusal with input as with_mount(mount) with data.pipeguard.parameters as parameters
}

test_one_bad_mount_among_good_ones_is_refused if {
	other := object.union(plain_mount, {"field": "spec.initContainers[0].volumeMounts[3]"})
	candidate := object.union(pod, {"mounts": [privileged_mount, other]})
	{"code": "PG001", "effect": "deny", "field": "spec.initContainers[0].volumeMounts[3]"} in admission.findings with input as candidate
		with data.pipeguard.parameters as parameters
	not admission.allowed with input as candidate with data.pipeguard.parameters as parameters
}

test_the_privilege_of_another_container_does_not_count if {
	candidate := object.union(with_mount(plain_mount), {"containers": [privileged_container]})
	not admission.allowed with input as candidate with data.pipeguard.parameters as parameters
}

test_a_mount_of_which_nobody_says_who_governs_it_is_refused_in_an_allowed_namespace if {
	every mount in [object.remove(plain_mount, {"policies"}), replaced(plain_mount, {"policies": null}), replaced(plain_mount, {"policies": ["gone"]})] {
		not admission.allowed with input as object.union(driver_pod, {"mounts": [mount]}) with data.pipeguard.parameters as parameters
	}
}

test_what_access_says_changes_nothing_where_no_policy_governs if {
	every said in [access, nobody, lenient, null, "x"] {
		admission.findings == refusal with input as with_mount(replaced(plain_mount, {"access": said}))
			with data.pipeguard.parameters as parameters
		admission.findings == set() with input as replaced(driver_pod, {"mounts": [replaced(plain_mount, {"access": said})]})
			with data.pipeguard.parameters as parameters
	}
}

test_labels_user_and_operation_do_not_matter if {
	candidate := object.union(with_mount(plain_mount), {
		"operation": "UPDATE",
		"subresource": "ephemeralcontainers",
		"labels": {"pipeguard.dev/exempt": "true"},
		"user": {"name": "system:admin", "groups": ["system:masters"]},
		"namespaceLabels": {"pipeguard.dev/exempt": "true"},
	})
	not admission.allowed with input as candidate with data.pipeguard.parameters as parameters
}

test_mounts_of_other_pipes_are_not_judged if {
	mount := object.union(plain_mount, {"guarded": false, "pipe": "docker_engine"})
	admission.decision == {"allowed": true, "findings": set()} with input as with_mount(mount)
		with data.pipeguard.parameters as parameters
}

test_both_conditions_together_pass_where_both_are_required if {
	admission.decision == {"allowed": true, "findings": set()} with input as object.union(driver_pod, {"mounts": [privileged_mount]})
		with data.pipeguard.parameters as requiring("PrivilegedAndAllowedNamespace")
}

test_the_action_decides_what_follows_for_a_mount[action] if {
	some action, effect in effects_of_actions
	admission.decision == {"allowed": effect != "deny", "findings": {{"code": "PG001", "effect": effect, "field": "spec.containers[0].volumeMounts[0]"}}} with input as with_mount(plain_mount)
		with data.pipeguard.parameters as acting(action, "Deny")
}

test_an_action_that_is_missing_or_not_known_refuses_a_mount if {
	admission.findings == refusal with input as with_mount(plain_mount) with data.pipeguard.parameters as object.remove(parameters, {"action"})
	every action in odd_actions {
		admission.findings == refusal with input as with_mount(plain_mount) with data.pipeguard.parameters as acting(action, "Audit")
	}
}

test_no_action_admits_a_mount_under_parameters_that_are_not_valid if {
	every bad in lenient_but_unusable {
		not admission.allowed with input as with_mount(plain_mount) with data.pipeguard.parameters as bad
	}
}

test_no_action_admits_a_mount_that_is_not_said_to_be_guarded_or_governed if {
	every changes in [{"guarded": null}, {"guarded": "true"}, {"policies": null}, {"policies": {}}, {"policies": ["csi"]}] {
		not admission.allowed with input as with_mount(replaced(plain_mount, changes)) with data.pipeguard.parameters as acting("Audit", "Audit")
	}
}

test_the_action_is_not_that_of_pipes_that_a_policy_governs if {
	not admission.allowed with input as with_mount(replaced(plain_mount, {"policies": ["csi"], "access": nobody}))
		with data.pipeguard.parameters as acting("Audit", "Audit")
}

test_the_action_takes_no_permission_away if {
	admission.decision == {"allowed": true, "findings": set()} with input as driver_pod with data.pipeguard.parameters as acting("Audit", "Audit")
}
