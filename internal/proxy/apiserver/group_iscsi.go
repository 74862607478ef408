package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

var iscsiTable = groupTable{
	groupRow: groupRow{"iscsi", "Iscsi", []string{"v1alpha1", "v1alpha2"}},
	operations: []operationRow{
		{"iscsi", "AddTargetPortal", false},
		{"iscsi", "DiscoverTargetPortal", true}, // it reads what the node knows, and asks no portal
		{"iscsi", "RemoveTargetPortal", false},
		{"iscsi", "ListTargetPortals", true},
		{"iscsi", "ConnectTarget", false},
		{"iscsi", "DisconnectTarget", false},
		{"iscsi", "GetTargetDisks", true},
		{"iscsi", "SetMutualChapSecret", false},
	},
	classes: map[protoreflect.Name]class{
		"MutualChapSecret": classSecret,
		"auth_type":        classPublic,
		"chap_secret":      classSecret,
		"chap_username":    classPublic, // as with shares
		"diskIDs":          classPublic,
		"iqn":              classID,
		"iqns":             classID,
		"target_address":   classPublic, // named with its port, as a portal
		"target_port":      classPublic,
	},
	kinds: map[protoreflect.Name]string{
		"iqn":           kindTarget,
		"iqns":          kindTarget,
		"target_portal": kindPortal,
	},
}
