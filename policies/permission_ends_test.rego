package pipeguard.admission_test

import data.pipeguard.admission

ending := {{"code": "PG009", "effect": "warn", "field": "spec.containers[0].volumeMounts[0]"}}

# It expires in two days: five of the seven in which it warns are gone.
expiring := {"expiresAt": "2026-01-04T03:04:05Z", "warnFrom": "2025-12-28T03:04:05Z"}

test_a_permission_that_ends_soon_is_warned_about if {
	admission.allowed with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with(expiring)
	admission.advice == ending with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with(expiring)
}

test_it_is_warned_about_from_its_second_on[from] if {
	some from, warned in {
		"2026-01-02T03:04:04Z": ending,
		"2026-01-02T03:04:05Z": ending,
		"2026-01-02T03:04:06Z": set(),
		"": set(),
	}
	admission.advice == warned with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with({"expiresAt": "2026-01-09T03:04:05Z", "warnFrom": from})
}

test_a_beginning_of_another_form_is_past if {
	every from in odd_times {
		admission.advice == ending with input as governed_pod
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as subject_with({"expiresAt": "2999-01-01T00:00:00Z", "warnFrom": from})
	}
}

test_another_subject_that_lasts_needs_no_warning if {
	every subjects in [[replaced(subject, expiring), subject], [subject, replaced(subject, expiring)]] {
		admission.advice == set() with input as governed_pod
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as policy_with({"subjects": {"kube-system": subjects}})
	}
	other := {"other": pipe_policy}
	admission.advice == set() with input as governed_by(["csi", "other"])
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as object.union(subject_with(expiring), other)
}

test_another_subject_that_does_not_permit_needs_a_warning if {
	every changes in [{"containers": ["x"]}, {"images": ["x"]}, {"serviceAccounts": ["x"]}, {"expiresAt": "2026-01-01T00:00:00Z", "warnFrom": "2025-12-25T00:00:00Z"}] {
		subjects := [replaced(subject, expiring), replaced(subject, changes)]
		admission.advice == ending with input as governed_pod
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as policy_with({"subjects": {"kube-system": subjects}})
	}
}

test_a_refusal_is_not_warned_about_as_well if {
	expired := {"expiresAt": "2026-01-01T00:00:00Z", "warnFrom": "2025-12-25T00:00:00Z"}
	every policies in [subject_with(expired), subject_with(object.union(expiring, {"containers": ["x"]})), policy_with({"subjects": {}})] {
		admission.advice == set() with input as governed_pod
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as policies
	}
}

test_who_stays_privileged_loses_nothing if {
	policies := {"csi": replaced(subject_with(expiring).csi, {"requirement": "PrivilegedOrAllowedNamespace"})}
	privileged := replaced(governed_pod, {"mounts": [replaced(governed_mount, {"privileged": true})]})
	admission.advice == set() with input as privileged
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policies
	admission.advice == ending with input as governed_pod
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as policies
	admission.advice == ending with input as privileged
		with data.pipeguard.parameters as parameters
		with data.pipeguard.policies as subject_with(expiring)
}

test_what_no_subject_is_needed_for_has_no_end if {
	every mount in [plain_mount, replaced(governed_mount, {"guarded": false}), replaced(governed_mount, {"neverAllowed": true})] {
		admission.advice == set() with input as replaced(governed_pod, {"mounts": [mount]})
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as subject_with(expiring)
	}
}

test_advice_never_denies if {
	every candidate in [governed_pod, pod, driver_pod, {}] {
		every finding in admission.advice {
			finding.effect == "warn"
		} with input as candidate
			with data.pipeguard.parameters as parameters
			with data.pipeguard.policies as subject_with(expiring)
	}
}
