package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

var diskTable = groupTable{
	groupRow: groupRow{"disk", "Disk", []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"}},
	operations: []operationRow{
		{"disk", "ListDiskLocations", true},
		{"disk", "PartitionDisk", false},
		{"disk", "Rescan", false},
		{"disk", "GetDiskNumberByName", true},
		{"disk", "ListDiskIDs", true},
		{"disk", "GetDiskStats", true},
		{"disk", "SetDiskState", false},
		{"disk", "GetDiskState", true},
	},
	methods: []methodRow{
		{group: "disk", method: "GetDiskNumberByName", operation: "GetDiskNumberByName", hub: "v1alpha1"}, // later versions have no such method
		{group: "disk", method: "DiskStats", operation: "GetDiskStats"},
		{group: "disk", method: "SetAttachState", operation: "SetDiskState"},
		{group: "disk", method: "GetAttachState", operation: "GetDiskState"},
	},
	fields: []fieldRow{
		{group: "disk", method: "ListDiskLocations", part: inResponse, served: "disk_locations", hub: "disk_locations", as: asDecimal},
		{group: "disk", method: "PartitionDisk", part: inRequest, served: "diskID", hub: "disk_number", as: asDecimal},
		{group: "disk", method: "ListDiskIDs", part: inResponse, served: "diskIDs", hub: "diskIDs", as: asDecimal},
		{group: "disk", method: "ListDiskIDs", part: inResponse, served: "diskIDs.identifiers", entries: []entryRow{{"page83", "page83"}, {"serialNumber", "serial_number"}}},
		{group: "disk", method: "DiskStats", part: inRequest, served: "diskID", hub: "disk_number", as: asDecimal},
		{group: "disk", method: "DiskStats", part: inResponse, served: "diskSize", hub: "total_bytes"},
		{group: "disk", method: "SetAttachState", part: inRequest, served: "diskID", hub: "disk_number", as: asDecimal},
		{group: "disk", method: "SetAttachState", part: inRequest, served: "isOnline", hub: "is_online"},
		{group: "disk", method: "GetAttachState", part: inRequest, served: "diskID", hub: "disk_number", as: asDecimal},
		{group: "disk", method: "GetAttachState", part: inResponse, served: "isOnline", hub: "is_online"},
	},
	classes: map[protoreflect.Name]class{
		"Adapter":        classPublic,
		"Bus":            classPublic,
		"LUNID":          classPublic,
		"Target":         classPublic,
		"diskID":         classPublic,
		"diskIDs":        classPublic, // decimal numbers, as the keys of a map
		"diskSize":       classPublic,
		"disk_locations": classPublic, // the same
		"disk_name":      classID,
		"disk_number":    classPublic, // a text in v1alpha1's answer
		"identifiers":    classPublic,
		"isOnline":       classPublic,
		"is_online":      classPublic,
		"page83":         classPublic,
		"serial_number":  classPublic,
		"total_bytes":    classPublic,
	},
	kinds: map[protoreflect.Name]string{
		"disk_name":   kindDiskName,
		"disk_number": kindDisk,
	},
}
