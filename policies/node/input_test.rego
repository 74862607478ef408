package pipeguard.node_test

import data.pipeguard.node

malformed contains object.remove(call, {key}) if some key in ["group", "operation", "request", "peer"]

malformed contains replaced(call, {key: value}) if {
	some key in ["group", "operation"]
	some value in ["", null, 1, true, ["x"], {"a": "x"}]
}

malformed contains replaced(call, {"request": value}) if some value in ["x", 1, true, ["x"]]

malformed contains replaced(call, {"peer": value}) if some value in [null, "x", 1, [driver]]

test_there_are_malformed_inputs if count(malformed) == 24

test_malformed_input_is_refused if {
	every bad in malformed {
		"PN000" in codes(node.findings) with input as bad with data.pipeguard.parameters.node as {}
		not node.allowed with input as bad with data.pipeguard.parameters.node as {}
	}
}

test_no_input_at_all_is_refused if {
	every bad in [{}, [], "x", null] {
		"PN000" in codes(node.findings) with input as bad with data.pipeguard.parameters.node as {}
	}
}

test_what_is_not_known_of_a_caller_is_well_formed if {
	every peer in [driver, host, nobody, replaced(nobody, {"assurance": "sid"})] {
		node.findings == set() with input as replaced(call, {"peer": peer}) with data.pipeguard.parameters.node as {}
	}
}
