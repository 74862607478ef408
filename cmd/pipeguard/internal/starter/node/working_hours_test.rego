package house_test

import data.pipeguard.node

# call is what the proxy asks about; "pipeguard policy eval -v" prints one that was recorded.
call(namespace, operation, now) := {
	"peer": {
		"assurance": "pod",
		"process": {"pid": 4242, "start": "2026-01-02T02:00:00Z", "exe": `C:\driver.exe`},
		"user": {"sid": "S-1-5-93-2-1", "name": ""},
		"pod": {"namespace": namespace, "name": "driver-x", "uid": "u", "serviceAccount": "driver"},
		"container": {"id": "c0ffee", "name": "driver", "image": "registry.example/driver:1", "hostProcess": false},
		"token": false,
	},
	"named": true,
	"pipe": "csi-proxy-volume-v1",
	"group": "volume",
	"version": "v1",
	"method": operation,
	"operation": operation,
	"request": {"volume_id": `\\?\Volume{1}\`},
	"node": "win-1",
	"now": now,
}

# Tests ask for their own code: other rules may refuse the same call.
is_refused(namespace, operation, now) if {
	some finding in node.findings with input as call(namespace, operation, now)
	finding.code == "HOUSE1"
}

test_the_day_is_open if {
	every now in ["2026-01-02T07:00:00Z", "2026-01-02T12:00:00Z", "2026-01-02T16:59:59Z"] {
		not is_refused("team-a", "FormatVolume", now)
	}
}

test_the_night_is_closed if {
	every now in ["2026-01-02T06:59:59Z", "2026-01-02T17:00:00Z", "2026-01-02T23:00:00Z"] {
		is_refused("team-a", "FormatVolume", now)
	}
}

test_a_time_that_is_not_there_is_closed if is_refused("team-a", "FormatVolume", "")

test_other_namespaces_are_left_alone if not is_refused("team-b", "FormatVolume", "2026-01-02T20:00:00Z")

test_other_operations_are_left_alone if not is_refused("team-a", "MountVolume", "2026-01-02T20:00:00Z")
