package apiserver

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	// The published packages register the messages and services that Load looks up by name.
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta3"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
)

// groupTable is everything about one group that is written by hand.
type groupTable struct {
	groupRow
	operations []operationRow
	methods    []methodRow
	fields     []fieldRow
	classes    map[protoreflect.Name]class
	// kinds says what a field of the newest request names on the host, where a Target is to be made of it; for a
	// message, with all that it holds.
	kinds map[protoreflect.Name]string
}

// publishedGroups are all groups that the published client knows.
var publishedGroups = []groupTable{diskTable, filesystemTable, volumeTable, smbTable, systemTable, iscsiTable}

// Groups returns the names of all groups that can be loaded.
func Groups() []string {
	names := make([]string, len(publishedGroups))
	for i, g := range publishedGroups {
		names[i] = g.name
	}
	return names
}

// groupRow is an API group: the service that its versions declare, and those versions, the hub last.
type groupRow struct {
	name     string
	service  string
	versions []string
}

// operationRow is a method of a hub.
type operationRow struct {
	group, name string
	readOnly    bool
}

// tables is everything about the served API that is written by hand. The rest comes from the descriptors.
type tables struct {
	groups     []groupRow
	operations []operationRow
	methods    []methodRow
	fields     []fieldRow
	classes    map[classKey]class
}

// published returns the tables of the API that is served.
func published() tables {
	t := tables{classes: publishedClasses}
	for _, g := range publishedGroups {
		t.groups = append(t.groups, g.groupRow)
		t.operations = append(t.operations, g.operations...)
		t.methods = append(t.methods, g.methods...)
		t.fields = append(t.fields, g.fields...)
	}
	return t
}
