package pipeguard.admission_test

import data.pipeguard.admission

ending := {{"code": "PG009", "effect": "warn", "field": "spec.containers[0].volumeMounts[0]"}}

having(subjects) := mounting({"access": access_with({"subjects": subjects})})

test_a_permission_that_ends_soon_is_warned_about if {
	admission.allowed with input as having([expiring]) with data.pipeguard.parameters as parameters
	admission.advice == ending with input as having([expiring]) with data.pipeguard.parameters as parameters
}

test_one_that_ends_later_is_not if {
	admission.advice == set() with input as having([replaced(expiring, {"endsSoon": false})])
		with data.pipeguard.parameters as parameters
}

test_what_is_not_said_to_last_ends if {
	every value in ["false", "", 0, null, [], {}] {
		admission.advice == ending with input as having([replaced(expiring, {"endsSoon": value})])
			with data.pipeguard.parameters as parameters
	}
	admission.advice == ending with input as having([object.remove(expiring, {"endsSoon"})])
		with data.pipeguard.parameters as parameters
}

test_another_subject_that_lasts_needs_no_warning if {
	lasting := replaced(subject, {"requirement": "PrivilegedOrAllowedNamespace"})
	every subjects in [[expiring, lasting], [lasting, expiring]] {
		admission.advice == set() with input as having(subjects) with data.pipeguard.parameters as parameters
	}
}

test_another_subject_that_does_not_permit_needs_a_warning if {
	every other in [null, replaced(subject, {"requirement": "PrivilegedAndAllowedNamespace"}), replaced(subject, {"requirement": "x"})] {
		every subjects in [[expiring, other], [other, expiring]] {
			admission.advice == ending with input as having(subjects) with data.pipeguard.parameters as parameters
		}
	}
}

test_many_subjects_are_one_warning if {
	admission.advice == ending with input as having([expiring, replaced(expiring, {"subject": "other"})])
		with data.pipeguard.parameters as parameters
}

test_a_refusal_is_not_warned_about_as_well if {
	both := replaced(expiring, {"requirement": "PrivilegedAndAllowedNamespace"})
	every subjects in [[], null, "x", {"a": expiring}, [both], [null]] {
		admission.advice == set() with input as having(subjects) with data.pipeguard.parameters as parameters
	}
	every bad in unusable {
		admission.advice == set() with input as having([expiring]) with data.pipeguard.parameters as bad
	}
}

test_who_stays_privileged_loses_nothing if {
	enough := access_with({"privilegedSuffices": true, "subjects": [expiring]})
	admission.advice == set() with input as mounting({"access": enough, "privileged": true})
		with data.pipeguard.parameters as parameters
	every value in [false, null, "true", 1] {
		admission.advice == ending with input as mounting({"access": enough, "privileged": value})
			with data.pipeguard.parameters as parameters
		admission.advice == ending with input as mounting({"access": replaced(enough, {"privilegedSuffices": value}), "privileged": true})
			with data.pipeguard.parameters as parameters
	}
}

test_what_no_subject_is_needed_for_has_no_end if {
	every changes in [{"policies": []}, {"guarded": false}, {"neverAllowed": true}] {
		admission.advice == set() with input as mounting(object.union({"access": access_with({"subjects": [expiring]})}, changes))
			with data.pipeguard.parameters as parameters
	}
}

test_only_false_is_unguarded_in_a_mount_whose_permission_ends[value] if {
	some value in ["false", "", 0, null, true]
	admission.advice == ending with input as mounting({"access": access_with({"subjects": [expiring]}), "guarded": value})
		with data.pipeguard.parameters as parameters
}

test_advice_never_denies if {
	every candidate in [having([expiring]), governed_pod, pod, driver_pod, {}] {
		every finding in admission.advice {
			finding.effect == "warn"
		} with input as candidate
			with data.pipeguard.parameters as parameters
	}
}
