package pipeguard.node_test

# Fixtures that the tests share: a call that is allowed, and callers.

call := {
	"peer": driver,
	"named": false,
	"pipe": "csi-proxy-filesystem-v1",
	"group": "filesystem",
	"version": "v1",
	"method": "PathExists",
	"operation": "PathExists",
	"request": {"path": `C:\var\lib\kubelet\x`},
	"node": "win-1",
	"now": "2026-01-02T03:04:05Z",
}

driver := {
	"assurance": "pod",
	"process": {"pid": 4242, "exe": `\Device\HarddiskVolume3\driver.exe`},
	"user": {"sid": "S-1-5-93-2-1", "name": ""},
	"pod": {"namespace": "kube-system", "name": "driver-x", "uid": "u", "serviceAccount": "driver"},
	"container": {"id": "c0ffee", "name": "plugin", "image": "registry.example/driver:1", "hostProcess": false},
	"token": false,
}

host := {
	"assurance": "process",
	"process": {"pid": 4243, "exe": `C:\Tools\Agent.exe`},
	"user": {"sid": "S-1-5-18", "name": `NT AUTHORITY\SYSTEM`},
	"pod": null,
	"container": null,
	"token": false,
}

nobody := {
	"assurance": "none",
	"process": {"pid": 0, "exe": ""},
	"user": {"sid": "", "name": ""},
	"pod": null,
	"container": null,
	"token": false,
}

replaced(object_, changes) := object.union(object.remove(object_, object.keys(changes)), changes)

stop(peer) := replaced(call, {
	"peer": peer, "pipe": "csi-proxy-system-v1alpha1", "group": "system", "version": "v1alpha1",
	"method": "StopService", "operation": "StopService", "request": {"name": "MSiSCSI", "force": false},
})

start(peer) := replaced(stop(peer), {"method": "StartService", "operation": "StartService", "request": {"name": "MSiSCSI"}})

partition(peer) := replaced(call, {
	"peer": peer, "pipe": "csi-proxy-disk-v1", "group": "disk",
	"method": "PartitionDisk", "operation": "PartitionDisk", "request": {"disk_number": 7},
})

set_state(peer, online) := replaced(call, {
	"peer": peer, "pipe": "csi-proxy-disk-v1", "group": "disk",
	"method": "SetDiskState", "operation": "SetDiskState", "request": {"disk_number": 7, "is_online": online},
})

format(peer) := replaced(call, {
	"peer": peer, "pipe": "csi-proxy-volume-v1", "group": "volume",
	"method": "FormatVolume", "operation": "FormatVolume", "request": {"volume_id": `\\?\Volume{1}\`},
})

named(asked) := replaced(asked, {"named": true})

codes(findings) := {finding.code | some finding in findings}
