package pipeguard.node_test

import data.pipeguard.node

test_service_control_is_refused_to_whoever_is_not_named if {
	every peer in [driver, host, nobody] {
		node.decision == {"allowed": false, "findings": {{"code": "PN001", "effect": "deny"}}} with input as stop(peer) with data.pipeguard.parameters.node as {}
		node.decision == {"allowed": false, "findings": {{"code": "PN001", "effect": "deny"}}} with input as replaced(stop(peer), {"request": null}) with data.pipeguard.parameters.node as {}
	}
}

test_service_control_is_left_to_the_access_list_for_whoever_is_named if {
	every peer in [driver, host] {
		node.decision == {"allowed": true, "findings": set()} with input as stop(peer)
			with data.pipeguard.parameters.node as naming(stop(peer), [{}], agent)
	}
}

test_service_control_is_refused_beside_who_is_named if {
	not node.allowed with input as stop(nobody) with data.pipeguard.parameters.node as naming(stop(nobody), [{}], agent)
}

test_service_control_is_known_by_group_and_operation if {
	node.allowed with input as replaced(stop(nobody), {"group": "other"}) with data.pipeguard.parameters.node as {}
	node.allowed with input as replaced(stop(nobody), {"operation": "Other"}) with data.pipeguard.parameters.node as {}
}

test_starting_is_refused_too if {
	every peer in [driver, host, nobody] {
		node.decision == {"allowed": false, "findings": {{"code": "PN001", "effect": "deny"}}} with input as start(peer) with data.pipeguard.parameters.node as {}
	}
	node.allowed with input as replaced(start(nobody), {"group": "other"}) with data.pipeguard.parameters.node as {}
	node.allowed with input as start(driver) with data.pipeguard.parameters.node as naming(start(driver), [{}], [])
}

test_the_served_name_does_not_count if {
	not node.allowed with input as replaced(stop(nobody), {"method": "GetService", "pipe": "csi-proxy-disk-v1", "version": "v9"}) with data.pipeguard.parameters.node as {}
	node.allowed with input as replaced(call, {"method": "StopService", "pipe": "csi-proxy-system-v1alpha1"}) with data.pipeguard.parameters.node as {}
}
