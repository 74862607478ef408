package pipeguard.admission_test

import data.pipeguard.admission

plugins := {
	"path": `C:\var\lib\kubelet\plugins`,
	"canonical": `C:\var\lib\kubelet\plugins`,
	"kind": "path",
	"pipe": "",
	"guarded": false,
	"place": "beneath",
	"hostPath": `C:\var\lib\kubelet`,
}

plugins_mount := object.union(plain_mount, plugins)

# The three places where a path can stand, and its field.
plugins_objects := {
	"spec.containers[0].volumeMounts[0]": with_mount(plugins_mount),
	"spec.volumes[0].hostPath.path": declaring(object.union(volume, plugins)),
	"spec.hostPath.path": with_volume(object.union(persistent_volume, plugins)),
}

with_host_paths(value) := replaced(parameters, {"hostPaths": value})

test_the_parameter_chooses_the_effect_of_a_host_path[value] if {
	some value, effect in {"Audit": "audit", "Warn": "warn", "Deny": "deny"}
	every field, candidate in plugins_objects {
		admission.decision == {
			"allowed": effect != "deny",
			"findings": {{"code": "PG011", "effect": effect, "field": field}},
		} with input as candidate with data.pipeguard.parameters as with_host_paths(value)
	}
}

test_ignore_says_nothing_of_a_host_path if {
	every _, candidate in plugins_objects {
		admission.findings == set() with input as candidate with data.pipeguard.parameters as with_host_paths("Ignore")
	}
}

test_an_unknown_parameter_denies_a_host_path if {
	every bad in array.concat(
		[with_host_paths(value) | some value in ["", "ignore", "deny", "Allow", null, true, 1, ["Ignore"], {"Ignore": true}]],
		[object.remove(parameters, {"hostPaths"}), {}, null, "x"],
	) {
		every _, candidate in plugins_objects {
			not admission.allowed with input as candidate with data.pipeguard.parameters as bad
		}
	}
}

test_every_place_but_none_is_judged[place] if {
	some place in ["path", "beneath", "above", "Above", " ", null, 0, true, [], {}]
	codes(admission.findings) == {"PG011"} with input as with_mount(replaced(plugins_mount, {"place": place}))
		with data.pipeguard.parameters as with_host_paths("Deny")
}

test_a_path_without_a_place_is_judged if {
	codes(admission.findings) == {"PG011"} with input as with_mount(object.remove(plugins_mount, {"place"}))
		with data.pipeguard.parameters as with_host_paths("Deny")
	admission.findings == set() with input as with_mount(replaced(plugins_mount, {"place": ""}))
		with data.pipeguard.parameters as with_host_paths("Deny")
}

test_neither_namespace_nor_privilege_lifts_a_host_path if {
	every candidate in [
		object.union(driver_pod, {"mounts": [replaced(plugins_mount, {"privileged": true})]}),
		object.union(driver_pod, {"mounts": [replaced(plugins_mount, {"privileged": true, "access": access_with({"subjects": [], "action": "Audit", "privilegedSuffices": true})})]}),
	] {
		codes(admission.findings) == {"PG011"} with input as candidate with data.pipeguard.parameters as with_host_paths("Deny")
	}
}

test_a_host_path_that_may_be_a_pipe_is_said_once if {
	mount := replaced(plain_mount, {"place": "above"})
	codes(admission.findings) == {"PG001"} with input as with_mount(mount) with data.pipeguard.parameters as with_host_paths("Deny")
	never := object.union(never_mount, {"place": "above", "guarded": false})
	codes(admission.findings) == {"PG003"} with input as with_mount(never) with data.pipeguard.parameters as with_host_paths("Deny")
}

# For a directory of equal power that contains guarded paths, the stricter parameter counts.
root := replaced(plugins_mount, {"path": `C:\`, "canonical": `C:\`, "equalPower": "directory", "place": "above"})

test_the_stricter_of_two_parameters_counts if {
	every pair in [
		["Ignore", "Ignore", set()], ["Ignore", "Audit", {"audit"}], ["Warn", "Ignore", {"warn"}], ["Audit", "Warn", {"warn"}],
		["Deny", "Audit", {"deny"}], ["Warn", "Deny", {"deny"}], ["Ignore", "Deny", {"deny"}], ["Audit", "none", {"deny"}],
	] {
		both := replaced(parameters, {"equalPower": pair[0], "hostPaths": pair[1]})
		{finding.effect | some finding in admission.findings; finding.code == "PG008"} == pair[2] with input as with_mount(root) with data.pipeguard.parameters as both
		not "PG011" in codes(admission.findings) with input as with_mount(root) with data.pipeguard.parameters as both
	}
	codes(admission.findings) == {"PG008"} with input as with_mount(object.remove(root, {"place"}))
		with data.pipeguard.parameters as replaced(parameters, {"equalPower": "Ignore", "hostPaths": "Deny"})
	admission.findings == set() with input as with_mount(replaced(root, {"place": ""}))
		with data.pipeguard.parameters as replaced(parameters, {"equalPower": "Ignore", "hostPaths": "Deny"})
}

permitted(changes) := with_mount(replaced(plugins_mount, object.union({"access": replaced(ungoverned, {"subjects": [subject]})}, changes)))

denying := replaced(parameters, {"equalPower": "Deny", "hostPaths": "Deny"})

test_a_subject_that_permits_the_host_path_is_left_alone if {
	every candidate in [permitted({}), permitted({"equalPower": "directory"}), permitted({"equalPower": "directory", "place": "above"})] {
		admission.decision == {"allowed": true, "findings": set()} with input as candidate with data.pipeguard.parameters as denying
	}
	declared := object.union(volume, plugins)
	admission.findings == set() with input as declaring(replaced(declared, {"access": replaced(ungoverned, {"subjects": [subject]})}))
		with data.pipeguard.parameters as denying
}

test_nothing_else_is_permitted_as_a_host_path[power] if {
	some power in ["pipe", "disk", "share", "Directory", null, ["directory"]]
	codes(admission.findings) == {"PG008"} with input as permitted({"equalPower": power}) with data.pipeguard.parameters as denying
}

test_subjects_of_a_pipe_permit_no_host_path if {
	every policies in [["csi"], null, "", {}] {
		"PG011" in codes(admission.findings) with input as permitted({"policies": policies}) with data.pipeguard.parameters as denying
		"PG008" in codes(admission.findings) with input as permitted({"policies": policies, "equalPower": "directory"})
			with data.pipeguard.parameters as denying
	}
}

test_without_power_there_must_be_text if {
	not admission.allowed with input as with_mount(object.remove(permitted({}).mounts[0], {"equalPower"})) with data.pipeguard.parameters as denying
}

test_what_is_no_list_of_subjects_permits_no_host_path[subjects] if {
	some subjects in [null, [], {}, "installer", true, {"a": subject}, {subject}, [null], ["installer"], [{}], [object.remove(subject, {"subject"})], [replaced(subject, {"subject": null})]]
	codes(admission.findings) == {"PG011"} with input as permitted({"access": replaced(ungoverned, {"subjects": subjects})})
		with data.pipeguard.parameters as denying
}

ends_soon := {{"code": "PG009", "effect": "warn", "field": "spec.containers[0].volumeMounts[0]"}}

host_path_ending(changes) := permitted(object.union({"access": replaced(ungoverned, {"subjects": [expiring]})}, changes))

test_a_host_path_permission_that_ends_soon_is_warned_about if {
	admission.advice == ends_soon with input as host_path_ending({}) with data.pipeguard.parameters as with_host_paths("Deny")
	admission.advice == ends_soon with input as host_path_ending({"equalPower": "directory"}) with data.pipeguard.parameters as with_host_paths("Deny")
}

test_where_nothing_ends_nothing_is_said if {
	admission.advice == set() with input as host_path_ending({}) with data.pipeguard.parameters as with_host_paths("Ignore")
	admission.advice == set() with input as host_path_ending({"equalPower": "directory", "place": ""})
		with data.pipeguard.parameters as replaced(parameters, {"equalPower": "Ignore"})
	admission.advice == set() with input as permitted({}) with data.pipeguard.parameters as with_host_paths("Deny")
	every changes in [{"guarded": true}, {"neverAllowed": true}, {"equalPower": "disk"}, {"policies": ["csi"], "guarded": false}] {
		admission.advice == set() with input as host_path_ending(changes) with data.pipeguard.parameters as with_host_paths("Deny")
	}
	admission.advice == set() with input as with_mount(replaced(plugins_mount, {"access": replaced(ungoverned, {"subjects": [expiring, subject]})}))
		with data.pipeguard.parameters as with_host_paths("Deny")
}
