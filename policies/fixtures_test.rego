package pipeguard.admission_test

# Fixtures that the tests share: a pod that is admitted, the parts that tests add to it, and parameters.

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
	"pod": {"labels": {}, "annotations": {}, "field": "metadata", "hostNetwork": false},
	"containers": [plain_container],
	"mounts": [],
	"unmounted": [],
	"persistentVolumes": [],
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
	"runAsUserName": "",
	"access": ungoverned,
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
	"equalPower": "",
	"place": "",
	"hostPath": "",
	"policies": [],
	"access": ungoverned,
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
	"equalPower": "",
	"place": "",
	"hostPath": "",
	"policies": [],
	"access": ungoverned,
	"field": "spec.volumes[0].hostPath.path",
}

persistent_volume := {
	"type": "hostPath",
	"path": `\\.\pipe\csi-proxy-disk-v1`,
	"canonical": `\\.\pipe\csi-proxy-disk-v1`,
	"kind": "pipe",
	"pipe": "csi-proxy-disk-v1",
	"guarded": true,
	"neverAllowed": false,
	"equalPower": "",
	"place": "",
	"hostPath": "",
	"policies": [],
	"access": ungoverned,
	"field": "spec.hostPath.path",
	"claim": {"namespace": "shop", "name": "data"},
}

declaring(entry) := object.union(pod, {"unmounted": [entry]})

with_volume(entry) := object.union(pod, {
	"kind": {"group": "", "version": "v1", "kind": "PersistentVolume"},
	"namespace": "",
	"serviceAccount": "",
	"containers": [],
	"persistentVolumes": [entry],
})

# access of a pipe that no policy governs.
ungoverned := {"action": "", "privilegedSuffices": false, "subjects": [], "nearest": []}

subject := {
	"policy": "csi",
	"subject": "azuredisk",
	"requirement": "AllowedNamespace",
	"expiresAt": "",
	"warnFrom": "",
	"endsSoon": false,
}

# It expires in two days, within the seven days of warnings.
expiring := replaced(subject, {"expiresAt": "2026-01-04T03:04:05Z", "warnFrom": "2025-12-28T03:04:05Z", "endsSoon": true})

# access of a pipe that the policy "csi" governs, for a container that is its subject.
access := {"action": "Deny", "privilegedSuffices": false, "subjects": [subject], "nearest": []}

access_with(changes) := replaced(access, changes)

# The same for a container that is not a subject.
nobody := access_with({
	"subjects": [],
	"nearest": [{"policy": "csi", "subject": "azuredisk", "field": "serviceAccount", "want": ["csi-azuredisk-node-sa"]}],
})

nobody_with(changes) := replaced(nobody, changes)

# access with every permission; without them, its action would let the object pass.
lenient := access_with({"action": "Audit", "privilegedSuffices": true})

governed_mount := replaced(plain_mount, {"policies": ["csi"], "access": access})

# The parameters would allow its namespace and service account.
governed_pod := replaced(driver_pod, {"mounts": [governed_mount]})

mounting(changes) := replaced(governed_pod, {"mounts": [replaced(governed_mount, changes)]})

governed_volume := replaced(volume, {"policies": ["csi"], "access": access})

declaring_governed(changes) := replaced(driver_pod, {"mounts": [], "unmounted": [replaced(governed_volume, changes)]})

with_governed_volume(changes) := with_volume(replaced(replaced(persistent_volume, {"policies": ["csi"], "access": nobody}), changes))

# The findings about a mount, a declaration and a PersistentVolume that are not permitted.
nobodys := {{"code": "PG010", "effect": "deny", "field": "spec.containers[0].volumeMounts[0]"}}

undeclared := {{"code": "PG002", "effect": "deny", "field": "spec.volumes[0].hostPath.path"}}

leading := {{"code": "PG007", "effect": "deny", "field": "spec.hostPath.path"}}

# The three places where a governed pipe can stand, with these changes, and their findings if it is not permitted.
governed_places(changes) := [
	{"object": mounting(changes), "refusal": nobodys},
	{"object": declaring_governed(changes), "refusal": undeclared},
	{"object": with_governed_volume(changes), "refusal": leading},
]

# Unlike object.union, it does not merge what the keys hold.
replaced(thing, changes) := object.union(object.remove(thing, object.keys(changes)), changes)

parameters := {
	"guardedPipes": ["csi-proxy*"],
	"requirement": "PrivilegedOrAllowedNamespace",
	"allowedNamespaces": {"kube-system": {"serviceAccounts": ["csi-azuredisk-node-sa"]}},
	"hostProcess": "Audit",
	"equalPower": "Audit",
	"hostPaths": "Audit",
	"action": "Deny",
	"strictestAction": "Deny",
}

# The action on guarded pipes that no PipePolicy governs, and that on paths that may lead to any.
acting(action, strictest) := object.union(parameters, {"action": action, "strictestAction": strictest})

# Actions that no parameters may have; one that is missing is among them as a mapping without it.
odd_actions := ["", "Ignore", "audit", "None", null, true, 1, ["Audit"], {"Audit": "audit"}]

effects_of_actions := {"Deny": "deny", "Warn": "warn", "Audit": "audit"}

requiring(requirement) := object.union(parameters, {"requirement": requirement})

handling(value) := object.union(parameters, {"hostProcess": value})

with_mount(mount) := object.union(pod, {"mounts": [mount]})

codes(findings) := {finding.code | some finding in findings}

# Parameters that are not valid.
unusable contains object.remove(parameters, {key}) if {
	some key in ["requirement", "allowedNamespaces", "hostProcess", "equalPower", "hostPaths"]
}

unusable contains object.union(parameters, {"requirement": value}) if {
	some value in ["", "None", "privilegedorallowednamespace", "Privileged", null, true, 1, ["PrivilegedOrAllowedNamespace"]]
}

unusable contains object.union(parameters, {"hostProcess": value}) if {
	some value in ["", "none", "audit", "Allow", null, true, 1, ["Ignore"]]
}

unusable contains object.union(parameters, {"hostPaths": value}) if {
	some value in ["", "none", "audit", "Allow", null, true, 1, ["Ignore"]]
}

unusable contains object.union(parameters, {"equalPower": value}) if {
	some value in ["", "none", "audit", "Allow", null, true, 1, ["Ignore"]]
}

unusable contains allowing(value) if {
	some value in ["kube-system", ["kube-system"], [{"serviceAccounts": []}], true, 1, ""]
}

unusable contains {}

unusable contains value if some value in [null, [], "x", 1, true]

# object.union merges deeply, so the old list has to go first.
allowing(namespaces) := object.union(object.remove(parameters, {"allowedNamespaces"}), {"allowedNamespaces": namespaces})

# Parameters that only record, but for what makes them not valid.
lenient_but_unusable contains object.union(object.remove(bad, {"action", "strictestAction"}), {"action": "Audit", "strictestAction": "Audit"}) if {
	some bad in unusable
	is_object(bad)
}
