package pipeguard.admission_test

import data.pipeguard.admission

test_a_subject_may_mount if {
	admission.decision == {"allowed": true, "findings": set()} with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as csi
}

test_nobodys_subject_is_refused[changes] if {
	some changes in [
		{"namespace": "shop"},
		{"namespace": "kube-system-2"},
		{"namespace": "KUBE-SYSTEM"},
		{"namespace": ""},
		{"serviceAccount": "default"},
		{"serviceAccount": ""},
		{"mounts": [replaced(governed_mount, {"container": "other"})]},
		{"mounts": [replaced(governed_mount, {"image": "registry.example/web:2"})]},
		{"mounts": [replaced(governed_mount, {"image": "REGISTRY.example/web:1"})]},
		{"mounts": [replaced(governed_mount, {"privileged": true, "container": "other"})]},
	]
	admission.decision == {"allowed": false, "findings": nobodys} with input as replaced(governed_pod, changes)
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as csi
}

test_the_parameters_do_not_permit_what_a_policy_governs if {
	policies := policy_with({"subjects": {}})
	admission.findings == nobodys with input as governed_pod
		with data.pipeguard.parameters as requiring("PrivilegedOrAllowedNamespace")
		with data.pipeguard.policies as policies
	admission.findings == nobodys with input as replaced(governed_pod, {"mounts": [replaced(governed_mount, {"privileged": true})]})
		with data.pipeguard.parameters as requiring("PrivilegedOrAllowedNamespace")
		with data.pipeguard.policies as policies
}

test_privileged_is_asked_for_besides_where_both_are_required if {
	policies := policy_with({"requirement": "PrivilegedAndAllowedNamespace"})
	admission.findings == nobodys with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policies
	every value in ["true", 1, null, ["true"], "True"] {
		admission.findings == nobodys with input as replaced(governed_pod, {"mounts": [replaced(governed_mount, {"privileged": value})]})
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as policies
	}
	admission.findings == set() with input as replaced(governed_pod, {"mounts": [replaced(governed_mount, {"privileged": true})]})
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policies
}

test_one_of_several_policies_is_enough if {
	policies := object.union({"another": replaced(pipe_policy, {"subjects": {}})}, csi)
	admission.findings == set() with input as governed_by(["another", "csi"])
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policies
}

test_a_policy_that_does_not_govern_the_pipe_permits_nothing if {
	policies := object.union({"another": replaced(pipe_policy, {"subjects": {}})}, csi)
	admission.findings == nobodys with input as governed_by(["another"])
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policies
}

test_a_mount_that_does_not_say_who_governs_it_is_refused[mount] if {
	some mount in array.concat(
		[object.remove(governed_mount, {"policies"})],
		[replaced(governed_mount, {"policies": value}) | some value in [null, "csi", {"a": "csi"}, {}, "", 0, true, [[]], [null], [["csi"]], [0]]],
	)
	candidate := replaced(governed_pod, {"mounts": [mount]})
	admission.findings == nobodys with input as candidate
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as csi
}

test_a_governed_mount_that_is_no_proper_entry_is_refused if {
	bad := array.concat(
		[object.remove(governed_mount, {key}) | some key in ["container", "image", "privileged"]],
		[replaced(governed_mount, {key: value}) | some key in ["container", "image"]; some value in [null, 0, true, ["web"]]],
	)
	every mount in bad {
		every open in [{"containers": [], "images": []}, {"containers": [null, 0, true, ["web"]], "images": [null, 0, true, ["web"]]}] {
			admission.findings == nobodys with input as replaced(governed_pod, {"mounts": [mount]})
				with data.pipeguard.parameters as parameters
				with data.pipeguard.policies as subject_with(open)
		}
	}
}

test_only_false_is_unguarded_in_a_governed_mount[value] if {
	some value in ["false", "", 0, null, []]
	candidate := replaced(governed_pod, {"namespace": "shop", "mounts": [replaced(governed_mount, {"guarded": value})]})
	admission.findings == nobodys with input as candidate
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as csi
}

test_a_governed_path_that_names_no_single_pipe_is_refused_for_a_subject_too if {
	every namespace in ["kube-system", "shop"] {
		candidate := replaced(governed_pod, {"namespace": namespace, "mounts": [object.union(never_mount, {"policies": ["csi"]})]})
		codes(admission.findings) == {"PG003"} with input as candidate
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as csi
	}
}

test_each_mount_is_judged_by_itself if {
	other := replaced(governed_mount, {"container": "other", "field": "spec.containers[1].volumeMounts[0]"})
	candidate := replaced(governed_pod, {"mounts": [governed_mount, other, governed_mount]})
	admission.findings == {{"code": "PG010", "effect": "deny", "field": "spec.containers[1].volumeMounts[0]"}} with input as candidate
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as csi
}
