package pipeguard.node_test

import data.pipeguard.node

test_service_control_is_refused_to_whoever_is_not_named if {
	every peer in [driver, host, nobody] {
		node.decision == {"allowed": false, "findings": {{"code": "PN001", "effect": "deny"}}} with input as stop(peer)
		node.decision == {"allowed": false, "findings": {{"code": "PN001", "effect": "deny"}}} with input as replaced(stop(peer), {"request": null})
	}
}

test_service_control_is_left_to_the_access_list_for_whoever_is_named if {
	every peer in [driver, host] {
		node.decision == {"allowed": true, "findings": set()} with input as named(stop(peer))
	}
}

test_service_control_is_known_by_group_and_operation if {
	node.allowed with input as replaced(stop(nobody), {"group": "other"})
	node.allowed with input as replaced(stop(nobody), {"operation": "Other"})
}

test_starting_is_refused_too if {
	every peer in [driver, host, nobody] {
		node.decision == {"allowed": false, "findings": {{"code": "PN001", "effect": "deny"}}} with input as start(peer)
	}
	node.allowed with input as replaced(start(nobody), {"group": "other"})
	node.allowed with input as named(start(driver))
}

test_the_served_name_does_not_count if {
	not node.allowed with input as replaced(stop(nobody), {"method": "GetService", "pipe": "csi-proxy-disk-v1", "version": "v9"})
	node.allowed with input as replaced(call, {"method": "StopService", "pipe": "csi-proxy-system-v1alpha1"})
}
