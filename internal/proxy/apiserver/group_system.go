package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

var systemTable = groupTable{
	groupRow: groupRow{"system", "System", []string{"v1alpha1"}},
	operations: []operationRow{
		{"system", "GetBIOSSerialNumber", true},
		{"system", "StartService", false},
		{"system", "StopService", false},
		{"system", "GetService", true},
	},
	classes: map[protoreflect.Name]class{
		"display_name":  classPublic,
		"force":         classPublic,
		"name":          classID,
		"serial_number": classPublic,
		"start_type":    classPublic,
		"status":        classPublic,
	},
	kinds: map[protoreflect.Name]string{"name": kindService},
}
