package pipeguard.admission_test

import data.pipeguard.admission

ending := {{"code": "PG009", "effect": "warn", "field": "spec.containers[0].volumeMounts[0]"}}

having(subjects) := mounting({"access": access_with({"subjects": subjects})})

test_a_permission_that_ends_soon_is_warned_about if {
	admission.allowed with input as having([expiring]) with data.pipeguard.parameters as parameters
	admission.advice == ending with input as having([expiring]) with data.pipeguard.parameters as parameters
}

# The time of the fixtures is 2026-01-02T03:04:05Z.
test_it_is_warned_about_from_its_second_on[from] if {
	some from, warned in {
		"2026-01-02T03:04:04Z": ending,
		"2026-01-02T03:04:05Z": ending,
		"2026-01-02T03:04:06Z": set(),
		"": set(),
	}
	admission.advice == warned with input as having([replaced(expiring, {"warnFrom": from})])
		with data.pipeguard.parameters as parameters
}

test_a_beginning_of_another_form_is_past if {
	every from in odd_times {
		admission.advice == ending with input as having([replaced(expiring, {"warnFrom": from})])
			with data.pipeguard.parameters as parameters
	}
	admission.advice == ending with input as having([object.remove(expiring, {"warnFrom"})])
		with data.pipeguard.parameters as parameters
}

test_by_a_clock_of_another_form_every_beginning_is_past if {
	late := having([replaced(expiring, {"expiresAt": "9999-12-31T23:59:59Z", "warnFrom": "9999-12-24T23:59:59Z"})])
	every now in array.concat(odd_times, ["", "0000"]) {
		admission.advice == ending with input as replaced(late, {"now": now}) with data.pipeguard.parameters as parameters
	}
	admission.advice == ending with input as object.remove(late, {"now"}) with data.pipeguard.parameters as parameters
	admission.advice == set() with input as late with data.pipeguard.parameters as parameters
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
	admission.advice == ending with input as having([expiring, replaced(expiring, {"warnFrom": "2025-12-29T03:04:05Z"})])
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
