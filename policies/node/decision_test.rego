package pipeguard.node_test

import data.pipeguard.node

test_no_finding_allows if {
	node.decision == {"allowed": true, "findings": set()} with input as call
}

test_warnings_allow if {
	some effect in ["warn", "audit"]
	node.allowed with node.findings as {{"code": "X", "effect": effect}}
}

test_a_denial_refuses if {
	not node.allowed with node.findings as {{"code": "X", "effect": "warn"}, {"code": "Y", "effect": "deny"}}
}

test_an_unknown_effect_refuses if {
	every effect in ["", "Warn", "deny ", "allow", null, 1] {
		not node.allowed with node.findings as {{"code": "X", "effect": effect}}
	}
}

test_a_finding_without_an_effect_refuses if {
	not node.allowed with node.findings as {{"code": "X"}}
}

test_other_operations_are_left_to_the_access_list if {
	every other in [["filesystem", "Rmdir"], ["iscsi", "ConnectTarget"], ["smb", "NewSmbGlobalMapping"], ["system", "GetService"], ["disk", "Rescan"], ["volume", "MountVolume"], [`\\.\pipe\other`, "/x.Y/Z"]] {
		every peer in [driver, host, nobody] {
			node.decision == {"allowed": true, "findings": set()} with input as replaced(call, {"peer": peer, "group": other[0], "operation": other[1]})
		}
	}
}

test_a_call_that_is_passed_on_unread_is_left_to_the_access_list if {
	node.allowed with input as replaced(call, {"request": null})
}

# An operation is the pair of its group and its name.
test_the_name_alone_is_no_operation if {
	every operation in ["StartService", "StopService", "PartitionDisk", "SetDiskState", "FormatVolume"] {
		node.allowed with input as replaced(call, {"operation": operation})
	}
}
