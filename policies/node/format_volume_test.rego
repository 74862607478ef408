package pipeguard.node_test

import data.pipeguard.node

test_format_volume_is_refused_to_whoever_is_not_named if {
	every peer in [driver, host, nobody] {
		node.decision == {"allowed": false, "findings": {{"code": "PN004", "effect": "deny"}}} with input as format(peer)
		node.decision == {"allowed": false, "findings": {{"code": "PN004", "effect": "deny"}}} with input as replaced(format(peer), {"request": null})
	}
}

test_format_volume_is_left_to_the_access_list_for_whoever_is_named if {
	every peer in [driver, host] {
		node.decision == {"allowed": true, "findings": set()} with input as named(format(peer))
	}
}

test_format_volume_is_known_by_group_and_operation if {
	node.allowed with input as replaced(format(nobody), {"group": "other"})
	node.allowed with input as replaced(format(nobody), {"operation": "Other"})
}
