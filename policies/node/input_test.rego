package pipeguard.node_test

import data.pipeguard.node

malformed contains object.remove(call, {key}) if some key in ["group", "operation", "request", "peer", "named"]

malformed contains replaced(call, {key: value}) if {
	some key in ["group", "operation"]
	some value in ["", null, 1, true, ["x"], {"a": "x"}]
}

malformed contains replaced(call, {"request": value}) if some value in ["x", 1, true, ["x"]]

malformed contains replaced(call, {"peer": value}) if some value in [null, "x", 1, [driver]]

malformed contains replaced(call, {"named": value}) if some value in unsaid

# Inputs that do not state explicitly that the caller is named.
unsaid := [null, "true", "", 1, [true], {"a": true}]

test_there_are_malformed_inputs if count(malformed) == 31

test_malformed_input_is_refused if {
	every bad in malformed {
		"PN000" in codes(node.findings) with input as bad
		not node.allowed with input as bad
	}
}

test_no_input_at_all_is_refused if {
	every bad in [{}, [], "x", null] {
		"PN000" in codes(node.findings) with input as bad
	}
}

test_what_is_not_known_of_a_caller_is_well_formed if {
	every peer in [driver, host, nobody, replaced(nobody, {"assurance": "sid"})] {
		node.findings == set() with input as replaced(call, {"peer": peer})
	}
}

test_what_is_not_said_names_nobody if {
	refused := {{"code": "PN000", "effect": "deny"}, {"code": "PN001", "effect": "deny"}}
	every peer in [driver, host, nobody] {
		every value in unsaid {
			node.findings == refused with input as replaced(stop(peer), {"named": value})
			not node.is_named with input as replaced(stop(peer), {"named": value})
		}
		node.findings == refused with input as object.remove(stop(peer), ["named"])
		not node.is_named with input as object.remove(stop(peer), ["named"])
		not node.is_named with input as stop(peer)
		node.is_named with input as named(stop(peer))
	}
}
