package pipeguard.admission_test

import data.pipeguard.admission

powerful := {"path": `C:\Windows`, "canonical": `C:\Windows`, "kind": "path", "pipe": "", "guarded": false, "equalPower": "directory"}

powerful_mount := object.union(plain_mount, powerful)

# The three places where a path can stand, and its field.
powerful_objects := {
	"spec.containers[0].volumeMounts[0]": with_mount(powerful_mount),
	"spec.volumes[0].hostPath.path": declaring(object.union(volume, powerful)),
	"spec.hostPath.path": with_volume(object.union(persistent_volume, powerful)),
}

treating(value) := replaced(parameters, {"equalPower": value})

test_the_parameter_chooses_the_effect_of_power[value] if {
	some value, effect in {"Audit": "audit", "Warn": "warn", "Deny": "deny"}
	every field, candidate in powerful_objects {
		admission.decision == {
			"allowed": effect != "deny",
			"findings": {{"code": "PG008", "effect": effect, "field": field}},
		} with input as candidate with data.pipeguard.parameters as treating(value)
	}
}

test_ignore_says_nothing_of_power if {
	every _, candidate in powerful_objects {
		admission.findings == set() with input as candidate with data.pipeguard.parameters as treating("Ignore")
	}
}

test_an_unknown_parameter_denies_power if {
	every bad in array.concat(
		[treating(value) | some value in ["", "ignore", "deny", "Allow", null, true, 1, ["Ignore"], {"Ignore": true}]],
		[object.remove(parameters, {"equalPower"}), {}, null, "x"],
	) {
		every _, candidate in powerful_objects {
			not admission.allowed with input as candidate with data.pipeguard.parameters as bad
		}
	}
}

test_each_power_is_treated_alike[power] if {
	some power in ["pipe", "directory", "disk", "share"]
	every field, effect in {"Ignore": set(), "Deny": {"PG008"}} {
		codes(admission.findings) == effect with input as with_mount(replaced(powerful_mount, {"equalPower": power}))
			with data.pipeguard.parameters as treating(field)
	}
}

test_a_power_that_nobody_knows_is_denied if {
	every power in ["Disk", "registry", " ", null, 0, true, false, [], {}, ["disk"]] {
		every value in ["Ignore", "Audit", "Warn"] {
			not admission.allowed with input as with_mount(replaced(powerful_mount, {"equalPower": power}))
				with data.pipeguard.parameters as treating(value)
		}
	}
	not admission.allowed with input as with_mount(object.remove(powerful_mount, {"equalPower"}))
		with data.pipeguard.parameters as treating("Ignore")
}

test_neither_namespace_nor_subject_nor_privilege_lifts_it if {
	mount := replaced(powerful_mount, {"privileged": true})
	every candidate in [object.union(driver_pod, {"mounts": [mount]}), replaced(governed_pod, {"mounts": [mount, replaced(mount, {"policies": ["csi"], "access": lenient})]})] {
		codes(admission.findings) == {"PG008"} with input as candidate
			with data.pipeguard.parameters as treating("Deny")
	}
}

test_a_guarded_path_with_power_is_said_once if {
	mount := replaced(plain_mount, {"equalPower": "pipe"})
	codes(admission.findings) == {"PG001"} with input as with_mount(mount) with data.pipeguard.parameters as treating("Deny")
	never := object.union(never_mount, {"equalPower": "pipe", "guarded": false})
	codes(admission.findings) == {"PG003"} with input as with_mount(never) with data.pipeguard.parameters as treating("Deny")
}

test_a_path_without_power_is_not_judged if {
	every entry in [object.union(powerful_mount, {"equalPower": ""}), object.union(plain_mount, {"guarded": false, "kind": "unc"})] {
		admission.findings == set() with input as with_mount(entry) with data.pipeguard.parameters as treating("Deny")
	}
}
