package pipeguard.admission_test

import data.pipeguard.admission

test_a_subject_may_mount if {
	admission.decision == {"allowed": true, "findings": set()} with input as governed_pod
		with data.pipeguard.parameters as parameters
}

test_nobodys_subject_is_refused if {
	every changes in [{}, {"privileged": true}, {"image": ""}, {"container": "other"}] {
		admission.decision == {"allowed": false, "findings": nobodys} with input as mounting(object.union({"access": nobody}, changes))
			with data.pipeguard.parameters as parameters
	}
}

test_the_parameters_do_not_permit_what_a_policy_governs[requirement] if {
	some requirement in ["PrivilegedOrAllowedNamespace", "PrivilegedAndAllowedNamespace", "AllowedNamespace"]
	every open in [null, {"kube-system": null}, {"kube-system": {"serviceAccounts": ["csi-azuredisk-node-sa"]}}] {
		every privileged in [true, false] {
			admission.findings == nobodys with input as mounting({"access": nobody, "privileged": privileged})
				with data.pipeguard.parameters as replaced(parameters, {"requirement": requirement, "allowedNamespaces": open})
		}
	}
}

test_the_parameters_do_not_forbid_what_a_policy_permits[requirement] if {
	some requirement in ["PrivilegedOrAllowedNamespace", "PrivilegedAndAllowedNamespace", "AllowedNamespace"]
	admission.findings == set() with input as replaced(governed_pod, {"namespace": "shop"})
		with data.pipeguard.parameters as replaced(parameters, {"requirement": requirement, "allowedNamespaces": null})
}

test_one_of_several_subjects_is_enough if {
	both := replaced(subject, {"policy": "another", "requirement": "PrivilegedAndAllowedNamespace"})
	every subjects in [[both, subject], [subject, both]] {
		admission.findings == set() with input as mounting({"policies": ["another", "csi"], "access": access_with({"subjects": subjects})})
			with data.pipeguard.parameters as parameters
	}
	admission.findings == nobodys with input as mounting({"policies": ["another", "csi"], "access": access_with({"subjects": [both, both]})})
		with data.pipeguard.parameters as parameters
}

test_a_mount_that_does_not_say_whether_it_is_privileged_is_refused if {
	mount := object.remove(governed_mount, {"privileged"})
	admission.findings == nobodys with input as replaced(governed_pod, {"mounts": [mount]})
		with data.pipeguard.parameters as parameters
}

test_only_false_is_unguarded_in_a_governed_mount[value] if {
	some value in ["false", "", 0, null, []]
	admission.findings == nobodys with input as mounting({"access": nobody, "guarded": value})
		with data.pipeguard.parameters as parameters
}

test_a_governed_mount_that_does_not_say_is_guarded if {
	mount := object.remove(replaced(governed_mount, {"access": nobody}), {"guarded"})
	admission.findings == nobodys with input as replaced(governed_pod, {"mounts": [mount]})
		with data.pipeguard.parameters as parameters
}

test_a_governed_path_that_names_no_single_pipe_is_refused_for_a_subject_too if {
	every said in [access, nobody, lenient] {
		candidate := replaced(governed_pod, {"mounts": [replaced(never_mount, {"policies": ["csi"], "access": said})]})
		codes(admission.findings) == {"PG003"} with input as candidate with data.pipeguard.parameters as parameters
	}
}

test_a_governed_pipe_that_is_not_guarded_is_not_judged if {
	admission.findings == set() with input as mounting({"access": nobody, "guarded": false})
		with data.pipeguard.parameters as parameters
}

test_each_mount_is_judged_by_itself if {
	other := replaced(governed_mount, {"access": nobody, "field": "spec.containers[1].volumeMounts[0]"})
	candidate := replaced(governed_pod, {"mounts": [governed_mount, other, governed_mount]})
	admission.findings == {{"code": "PG010", "effect": "deny", "field": "spec.containers[1].volumeMounts[0]"}} with input as candidate
		with data.pipeguard.parameters as parameters
}

test_the_action_decides_what_follows_for_a_mount[action] if {
	some action, effect in {"Deny": "deny", "Warn": "warn", "Audit": "audit"}
	admission.decision == {
		"allowed": effect != "deny",
		"findings": {{"code": "PG010", "effect": effect, "field": "spec.containers[0].volumeMounts[0]"}},
	} with input as mounting({"access": nobody_with({"action": action})}) with data.pipeguard.parameters as parameters
}
