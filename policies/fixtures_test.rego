package pipeguard.admission_test

# What the tests share: a pod that nothing is wrong with, the parts that tests add to it, and parameters.

pod := {
	"schema": "pipeguard.dev/admission/v1",
	"now": "2026-01-02T03:04:05Z",
	"operation": "CREATE",
	"kind": {"group": "", "version": "v1", "kind": "Pod"},
	"subresource": "",
	"namespace": "shop",
	"name": "web-0",
	"namespaceLabels": {},
	"serviceAccount": "default",
	"user": {"name": "alice", "groups": []},
	"labels": {},
	"annotations": {},
	"containers": [plain_container],
	"mounts": [],
	"unmounted": [],
}

driver_pod := object.union(pod, {
	"namespace": "kube-system",
	"serviceAccount": "csi-azuredisk-node-sa",
	"mounts": [plain_mount],
})

plain_container := {
	"name": "web",
	"type": "container",
	"image": "registry.example/web:1",
	"privileged": false,
	"hostProcess": false,
	"field": "spec.containers[0]",
}

privileged_container := object.union(plain_container, {"privileged": true})

plain_mount := {
	"container": "web",
	"containerType": "container",
	"image": "registry.example/web:1",
	"privileged": false,
	"hostProcess": false,
	"volume": "disk",
	"path": `\\.\pipe\csi-proxy-disk-v1`,
	"subPath": "",
	"canonical": `\\.\pipe\csi-proxy-disk-v1`,
	"kind": "pipe",
	"pipe": "csi-proxy-disk-v1",
	"guarded": true,
	"neverAllowed": false,
	"field": "spec.containers[0].volumeMounts[0]",
	"volumeField": "spec.volumes[0].hostPath.path",
}

privileged_mount := object.union(plain_mount, {"privileged": true})

never_mount := object.union(plain_mount, {
	"path": `\\.\pipe\`,
	"canonical": `\\.\pipe`,
	"kind": "pipe-root",
	"pipe": "",
	"neverAllowed": true,
})

volume := {
	"volume": "later",
	"path": `\\.\pipe\csi-proxy-disk-v1`,
	"canonical": `\\.\pipe\csi-proxy-disk-v1`,
	"kind": "pipe",
	"pipe": "csi-proxy-disk-v1",
	"guarded": true,
	"neverAllowed": false,
	"field": "spec.volumes[0].hostPath.path",
}

parameters := {
	"guardedPipes": ["csi-proxy*"],
	"requirement": "PrivilegedOrAllowedNamespace",
	"allowedNamespaces": {"kube-system": {"serviceAccounts": ["csi-azuredisk-node-sa"]}},
	"hostProcess": "Audit",
}

requiring(requirement) := object.union(parameters, {"requirement": requirement})

handling(value) := object.union(parameters, {"hostProcess": value})

with_mount(mount) := object.union(pod, {"mounts": [mount]})

codes(findings) := {finding.code | some finding in findings}

# What parameters must not look like.
unusable contains object.remove(parameters, {key}) if {
	some key in ["requirement", "allowedNamespaces", "hostProcess"]
}

unusable contains object.union(parameters, {"requirement": value}) if {
	some value in ["", "None", "privilegedorallowednamespace", "Privileged", null, true, 1, ["PrivilegedOrAllowedNamespace"]]
}

unusable contains object.union(parameters, {"hostProcess": value}) if {
	some value in ["", "none", "audit", "Allow", null, true, 1, ["Ignore"]]
}

unusable contains allowing(value) if {
	some value in ["kube-system", ["kube-system"], [{"serviceAccounts": []}], true, 1, ""]
}

unusable contains {}

unusable contains value if some value in [null, [], "x", 1, true]

# object.union merges deeply, so the old list has to go first.
allowing(namespaces) := object.union(object.remove(parameters, {"allowedNamespaces"}), {"allowedNamespaces": namespaces})
