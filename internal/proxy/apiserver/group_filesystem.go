package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

var filesystemTable = groupTable{
	groupRow: groupRow{"filesystem", "Filesystem", []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"}},
	operations: []operationRow{
		{"filesystem", "PathExists", true},
		{"filesystem", "Mkdir", false},
		{"filesystem", "Rmdir", false},
		{"filesystem", "RmdirContents", false},
		{"filesystem", "CreateSymlink", false},
		{"filesystem", "IsSymlink", true},
	},
	methods: []methodRow{
		{group: "filesystem", method: "LinkPath", operation: "CreateSymlink"},
		{group: "filesystem", method: "IsMountPoint", operation: "IsSymlink"},
	},
	fields: []fieldRow{
		{group: "filesystem", method: anyMethod, part: inRequest, served: "context",
			why: "every context was checked against the same directories, so it never changed what was done"},
		{group: "filesystem", method: anyMethod, part: inResponse, served: "error", why: errorNeverSet},
		{group: "filesystem", method: "IsMountPoint", part: inResponse, served: "is_mount_point", hub: "is_symlink"},
	},
	classes: map[protoreflect.Name]class{
		"context":        classPublic,
		"error":          classPublic,
		"exists":         classPublic,
		"force":          classPublic,
		"is_mount_point": classPublic,
		"is_symlink":     classPublic,
		"path":           classPath,
		"source_path":    classPath,
		"target_path":    classPath,
	},
}

// errorNeverSet is why the error fields of old responses stay empty.
const errorNeverSet = "was never set: errors have always been gRPC errors"
