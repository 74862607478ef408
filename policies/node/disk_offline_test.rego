package pipeguard.node_test

import data.pipeguard.node

test_offline_is_refused_to_whoever_is_not_named if {
	every peer in [driver, host, nobody] {
		node.decision == {"allowed": false, "findings": {{"code": "PN003", "effect": "deny"}}} with input as set_state(peer, false)
	}
}

# Every state except online counts as offline.
test_what_is_not_online_is_offline if {
	every value in [null, "true", 1, [true], {"a": true}] {
		not node.allowed with input as set_state(driver, value)
	}
	not node.allowed with input as replaced(set_state(driver, true), {"request": null})
	not node.allowed with input as replaced(set_state(driver, true), {"request": {"disk_number": 1}})
}

test_online_is_left_to_the_access_list if {
	every peer in [driver, host, nobody] {
		node.decision == {"allowed": true, "findings": set()} with input as set_state(peer, true)
	}
}

test_offline_is_left_to_the_access_list_for_whoever_is_named if {
	every peer in [driver, host] {
		node.allowed with input as named(set_state(peer, false))
	}
}

test_offline_is_known_by_group_and_operation if {
	node.allowed with input as replaced(set_state(nobody, false), {"group": "other"})
	node.allowed with input as replaced(set_state(nobody, false), {"operation": "Other"})
}
