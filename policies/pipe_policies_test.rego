package pipeguard.admission_test

import data.pipeguard.admission

# Changes of an entry that leave its governing policies or their action unknown. Its other fields would let it pass.
unknown contains {"access": value} if some value in [null, "", "Audit", 0, true, [], [lenient], ["Audit"], {}, {"csi": lenient}]

unknown contains {"access": replaced(lenient, {"action": value})} if {
	some value in ["", "audit", "AUDIT", "Audit ", "Allow", null, 1, true, [], ["Audit"], {"Audit": "audit"}]
}

unknown contains {"access": object.remove(lenient, {"action"})}

unknown contains {"access": lenient, "policies": value} if {
	some value in [null, "", "csi", 0, true, {}, {"a": "csi"}, [null], [0], [[]], [["csi"]], [{}], ["csi", null], [null, "csi"], ["csi", ["csi"]], ["a", null, "b"], ["a", {}, "b"]]
}

test_there_are_unknown_entries if count(unknown) == 39

# With governing policies and action known, a mount and a declaration have no finding, and a PersistentVolume has one that lets it pass.
test_the_same_passes_where_it_is_known if {
	every place in governed_places({"access": lenient, "privileged": true}) {
		admission.allowed with input as place.object with data.pipeguard.parameters as parameters
	}
}

test_what_is_unknown_permits_nobody_and_excuses_nothing if {
	every changes in unknown {
		every place in governed_places(object.union(changes, {"privileged": true})) {
			admission.decision == {"allowed": false, "findings": place.refusal} with input as place.object
				with data.pipeguard.parameters as parameters
			admission.advice == set() with input as place.object with data.pipeguard.parameters as parameters
		}
	}
}

test_an_entry_without_one_of_them_is_refused_as_well[key] if {
	some key in ["access", "policies"]
	mount := object.remove(replaced(governed_mount, {"access": lenient, "privileged": true}), {key})
	admission.decision == {"allowed": false, "findings": nobodys} with input as replaced(governed_pod, {"mounts": [mount]})
		with data.pipeguard.parameters as parameters
	declared := object.remove(replaced(governed_volume, {"access": lenient}), {key})
	admission.decision == {"allowed": false, "findings": undeclared} with input as replaced(driver_pod, {"mounts": [], "unmounted": [declared]})
		with data.pipeguard.parameters as parameters
	persistent := object.remove(replaced(persistent_volume, {"access": lenient, "policies": ["csi"]}), {key})
	admission.decision == {"allowed": false, "findings": leading} with input as with_volume(persistent)
		with data.pipeguard.parameters as parameters
}

# Values in the place of the subjects that are not a list of subjects.
no_subjects contains value if some value in [null, "", "azuredisk", 0, true, [], {}, {"csi": subject}, subject]

no_subjects contains [value] if some value in [null, "", "azuredisk", 0, true, [], {}, [subject], {"csi": subject}]

no_subjects contains [replaced(subject, {"requirement": value})] if {
	some value in ["", "Privileged", "allowednamespace", "AllowedNamespace ", null, 1, true, [], ["AllowedNamespace"], {"AllowedNamespace": true}]
}

no_subjects contains [object.remove(subject, {"requirement"})]

test_there_are_ways_to_be_no_subject if count(no_subjects) == 29

test_a_subject_that_cannot_be_read_is_nobody if {
	every subjects in no_subjects {
		every place in governed_places({"access": access_with({"subjects": subjects}), "privileged": true}) {
			admission.decision == {"allowed": false, "findings": place.refusal} with input as place.object
				with data.pipeguard.parameters as parameters
		}
	}
	without := {"access": object.remove(access, {"subjects"}), "privileged": true}
	every place in governed_places(without) {
		admission.decision == {"allowed": false, "findings": place.refusal} with input as place.object
			with data.pipeguard.parameters as parameters
	}
}

test_one_bad_subject_does_not_hide_the_next if {
	subjects := [null, 5, {"requirement": "x"}, subject]
	every candidate in [mounting({"access": access_with({"subjects": subjects})}), declaring_governed({"access": access_with({"subjects": subjects})})] {
		admission.findings == set() with input as candidate with data.pipeguard.parameters as parameters
	}
}

test_what_the_rules_do_not_read_changes_nothing if {
	bad := array.concat(
		[object.remove(access, {key}) | some key in ["privilegedSuffices", "nearest"]],
		[access_with({key: value}) | some key in ["privilegedSuffices", "nearest"]; some value in [null, "true", 0, {}, [[]]]],
	)
	every said in bad {
		admission.findings == set() with input as mounting({"access": said}) with data.pipeguard.parameters as parameters
	}
}

test_a_subject_meets_its_requirement[requirement] if {
	some requirement, privilege_is_asked in {
		"AllowedNamespace": false,
		"PrivilegedOrAllowedNamespace": false,
		"PrivilegedAndAllowedNamespace": true,
	}
	said := access_with({"subjects": [replaced(subject, {"requirement": requirement})]})
	admission.findings == set() with input as mounting({"access": said, "privileged": true})
		with data.pipeguard.parameters as parameters
	every value in [false, null, 0, 1, "", "true", "True", [], ["true"], [true], {"true": true}] {
		findings := {false: set(), true: nobodys}[privilege_is_asked]
		admission.findings == findings with input as mounting({"access": said, "privileged": value})
			with data.pipeguard.parameters as parameters
	}
}

test_only_true_says_that_privileged_suffices if {
	admission.allowed with input as mounting({"access": nobody_with({"privilegedSuffices": true}), "privileged": true})
		with data.pipeguard.parameters as parameters
	every value in [false, null, 0, 1, "", "true", "True", [], ["true"], [true], {"true": true}] {
		admission.findings == nobodys with input as mounting({"access": nobody_with({"privilegedSuffices": value}), "privileged": true})
			with data.pipeguard.parameters as parameters
	}
	admission.findings == nobodys with input as mounting({"access": object.remove(nobody, {"privilegedSuffices"}), "privileged": true})
		with data.pipeguard.parameters as parameters
}

test_unusable_parameters_refuse_what_is_governed if {
	every bad in unusable {
		every action in ["Deny", "Warn", "Audit"] {
			every place in governed_places({"access": replaced(lenient, {"action": action}), "privileged": true}) {
				admission.decision == {"allowed": false, "findings": place.refusal} with input as place.object
					with data.pipeguard.parameters as bad
			}
		}
	}
}

# Values of access for a pipe that no policy governs: the parameters decide in every case.
said_of_the_ungoverned contains value if some value in [ungoverned, access, nobody, lenient, null, "x", []]

test_the_parameters_decide_about_what_nobody_governs if {
	every said in said_of_the_ungoverned {
		changes := {"policies": [], "access": said}
		admission.findings == set() with input as mounting(changes) with data.pipeguard.parameters as parameters
		admission.findings == set() with input as declaring_governed(changes) with data.pipeguard.parameters as parameters
		every place in governed_places(changes) {
			findings := admission.findings with input as replaced(place.object, {"namespace": "shop"})
				with data.pipeguard.parameters as parameters
			{[finding.code, finding.effect] | some finding in findings} in {{["PG001", "deny"]}, {["PG002", "deny"]}, {["PG007", "deny"]}}
		}
	}
}

test_the_action_decides_what_follows_everywhere[action] if {
	some action, effect in {"Deny": "deny", "Warn": "warn", "Audit": "audit"}
	every place in governed_places({"access": nobody_with({"action": action})}) {
		findings := {object.union(finding, {"effect": effect}) | some finding in place.refusal}
		admission.decision == {"allowed": effect != "deny", "findings": findings} with input as place.object
			with data.pipeguard.parameters as parameters
	}
}

test_the_action_of_the_parameters_needs_valid_ones_and_a_guarded_pipe_that_no_policy_governs if {
	every bad in lenient_but_unusable {
		admission.effect_of(plain_mount) == "deny" with data.pipeguard.parameters as bad
	}
	every changes in [{"guarded": null}, {"guarded": "true"}, {"policies": null}, {"policies": {}}, {"policies": "csi"}, {"policies": ["csi"]}] {
		admission.effect_of(replaced(plain_mount, changes)) == "deny" with data.pipeguard.parameters as acting("Audit", "Audit")
	}
	admission.effect_of(plain_mount) == "audit" with data.pipeguard.parameters as acting("Audit", "Deny")
}
