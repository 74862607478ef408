package pipeguard.admission_test

import data.pipeguard.admission

# Policies that nobody can read: wrong in one place each.
unsound contains policy_with({"action": value}) if some value in ["", "deny", "DENY", "warn", "Enforce", null, 1, ["Deny"]]

unsound contains policy_with({"requirement": value}) if some value in ["", "Privileged", "allowednamespace", null, 1, ["AllowedNamespace"]]

unsound contains policy_with({"subjects": value}) if some value in ["", null, 1, [], [subject], {"kube-system": subject}, {"kube-system": null}, {"kube-system": "azuredisk"}]

unsound contains {"csi": object.remove(pipe_policy, {key})} if some key in ["action", "requirement", "subjects"]

unsound contains {"csi": value} if some value in [null, "Deny", 1, true, [], {}]

unsound contains value if some value in [null, "csi", 1, true, [], ["csi"], {}, {"CSI": pipe_policy}, {"": pipe_policy}]

unsound contains policy_with({"action": action, key: null}) if {
	some action in ["Warn", "Audit"]
	some key in ["requirement", "subjects"]
}

test_there_are_unsound_policies if count(unsound) == 44

# Privileged would be enough if nothing else were asked, and the action of the sound one is lenient.
test_unsound_policies_permit_nobody_and_excuse_nothing if {
	lenient := {"lenient": replaced(pipe_policy, {"action": "Audit", "requirement": "PrivilegedOrAllowedNamespace"})}
	every bad in unsound {
		every names in [["csi"], ["csi", "lenient"], ["lenient", "csi"]] {
			mount := replaced(governed_mount, {"policies": names, "privileged": true})
			not admission.allowed with input as replaced(governed_pod, {"mounts": [mount]})
				with data.pipeguard.parameters as parameters
				with data.pipeguard.policies as merged(bad, lenient)
		}
	}
}

merged(a, b) := object.union(a, b) if is_object(a)

merged(a, _) := a if not is_object(a)

test_policies_of_the_wrong_type_spoil_what_nobody_governs_too[bad] if {
	some bad in [null, "csi", 1, true, [], ["csi"]]
	not admission.allowed with input as driver_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as bad
}

test_without_policies_the_parameters_decide if {
	admission.allowed with input as driver_pod with data.pipeguard.parameters as parameters
	admission.allowed with input as driver_pod with data.pipeguard.parameters as parameters with data.pipeguard.policies as {}
	not admission.allowed with input as governed_pod with data.pipeguard.parameters as parameters
}

test_unusable_parameters_refuse_what_is_governed if {
	every bad in unusable {
		admission.findings == nobodys with input as governed_pod
			with data.pipeguard.parameters as bad
			with data.pipeguard.policies as policy_with({"action": "Deny"})
		not admission.allowed with input as replaced(governed_pod, {"serviceAccount": "default"})
			with data.pipeguard.parameters as bad
			with data.pipeguard.policies as policy_with({"action": "Audit"})
	}
}

test_a_subject_that_cannot_be_read_is_nobody if {
	bad := array.concat(
		[object.remove(subject, {key}) | some key in ["serviceAccounts", "containers", "images", "expiresAt"]],
		[replaced(subject, {key: value}) |
			some key in ["serviceAccounts", "containers", "images"]
			some value in [null, "", "web", "csi-azuredisk-node-sa", "registry.example/web:1", 0, true, {}, {"a": "web", "b": "csi-azuredisk-node-sa", "c": "registry.example/web:1", "d": "registry.example/web*"}, [null], [0], [[]], [""]]
		],
	)
	every one in array.concat(bad, [null, "azuredisk", 0, [], {}]) {
		admission.decision == {"allowed": false, "findings": nobodys} with input as governed_pod
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as policy_with({"subjects": {"kube-system": [one]}})
	}
}

test_one_bad_subject_does_not_hide_the_next if {
	admission.allowed with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policy_with({"subjects": {"kube-system": [null, {"images": 5}, subject]}})
}

test_an_empty_list_leaves_the_question_open[changes] if {
	some changes, candidate in {
		{"serviceAccounts": []}: replaced(governed_pod, {"serviceAccount": "anyone"}),
		{"containers": []}: replaced(governed_pod, {"mounts": [replaced(governed_mount, {"container": "any"})]}),
		{"images": []}: replaced(governed_pod, {"mounts": [replaced(governed_mount, {"image": "elsewhere.example/any:1"})]}),
	}
	admission.allowed with input as candidate
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with(changes)
	not admission.allowed with input as candidate
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as csi
}

test_every_service_account_is_not_the_lack_of_one if {
	every changes in [{"serviceAccount": ""}, {"namespace": ""}] {
		policies := policy_with({"subjects": {"kube-system": [replaced(subject, {"serviceAccounts": []})], "": [replaced(subject, {"serviceAccounts": []})]}})
		admission.findings == nobodys with input as replaced(governed_pod, changes)
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as policies
	}
}

test_images_are_exact_or_beginnings[pattern] if {
	some pattern, fits in {
		"registry.example/web:1": true,
		"registry.example/web*": true,
		"registry.example/*": true,
		"registry.example/web:1*": true,
		"registry.example/web": false,
		"registry.example/web:2*": false,
		"registry.example/Web*": false,
		"*": false,
		"registry*": false,
		"*/web:1": false,
		"registry.example/*:1": false,
		"": false,
		"/*": false,
	}
	admission.allowed == fits with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with({"images": [0, pattern]})
}

# The time of the fixtures is 2026-01-02T03:04:05Z.
test_a_permission_ends_at_its_second[end] if {
	some end, is_open in {
		"2026-01-02T03:04:06Z": true,
		"2026-01-02T03:04:05Z": false,
		"2026-01-02T03:04:04Z": false,
		"2025-12-31T23:59:59Z": false,
		"9999-12-31T23:59:59Z": true,
	}
	admission.allowed == is_open with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with({"expiresAt": end})
}

test_an_end_of_another_form_is_past if {
	every end in odd_times {
		admission.decision == {"allowed": false, "findings": nobodys} with input as governed_pod
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as subject_with({"expiresAt": end})
	}
}

test_a_clock_of_another_form_ends_all_that_can_end if {
	every now in array.concat(odd_times, ["", "0000"]) {
		admission.findings == nobodys with input as replaced(governed_pod, {"now": now})
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as subject_with({"expiresAt": "2999-01-01T00:00:00Z"})
	}
	admission.findings == nobodys with input as object.remove(governed_pod, {"now"})
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with({"expiresAt": "2999-01-01T00:00:00Z"})
}

test_the_strictest_action_decides[effect] if {
	some effect, cases in {
		"deny": [["Deny"], ["Deny", "Audit"], ["Audit", "Deny"], ["Warn", "Deny"]],
		"warn": [["Warn"], ["Warn", "Audit"], ["Audit", "Warn"], ["Warn", "Warn"]],
		"audit": [["Audit"], ["Audit", "Audit"]],
	}
	every actions in cases {
		names := [sprintf("p%d", [i]) | some i, _ in actions]
		policies := {name: replaced(pipe_policy, {"action": actions[i], "subjects": {}}) | some i, name in names}
		every candidate in [
			replaced(governed_pod, {"mounts": [replaced(governed_mount, {"policies": names})]}),
			replaced(governed_pod, {"mounts": [], "unmounted": [replaced(volume, {"policies": names})]}),
			with_volume(replaced(persistent_volume, {"policies": names})),
		] {
			{finding.effect | some finding in admission.findings} == {effect} with input as candidate
				with data.pipeguard.parameters as parameters
				with data.pipeguard.policies as policies
		}
	}
}
