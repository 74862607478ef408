package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

var smbTable = groupTable{
	groupRow: groupRow{"smb", "Smb", []string{"v1alpha1", "v1beta1", "v1beta2", "v1"}},
	operations: []operationRow{
		{"smb", "NewSmbGlobalMapping", false},
		{"smb", "RemoveSmbGlobalMapping", false},
	},
	fields: []fieldRow{
		{group: "smb", method: anyMethod, part: inResponse, served: "error", why: errorNeverSet},
	},
	classes: map[protoreflect.Name]class{
		"error":       classPublic,
		"local_path":  classPath,
		"password":    classSecret,
		"remote_path": classID,
		"username":    classPublic, // whose credentials a share is mapped with is what a record is for
	},
	kinds: map[protoreflect.Name]string{"remote_path": kindShare},
}
