package apiserver

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// without returns rows without those that drop names.
func without[T any](rows []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(rows), drop)
}

func methodAt(tb *tables, method string) int {
	return slices.IndexFunc(tb.methods, func(r methodRow) bool { return r.method == method })
}

func TestLoadRefusesWhatItCannotMap(t *testing.T) {
	dropField := func(method, served, hub string) func(*tables) {
		return func(tb *tables) {
			tb.fields = without(tb.fields, func(r fieldRow) bool { return r.method == method && r.served == served && r.hub == hub })
		}
	}
	changeField := func(method, served string, change func(*fieldRow)) func(*tables) {
		return func(tb *tables) {
			tb.fields = slices.Clone(tb.fields)
			for i := range tb.fields {
				if tb.fields[i].method == method && tb.fields[i].served == served {
					change(&tb.fields[i])
				}
			}
		}
	}
	tests := []struct {
		name   string
		groups []string
		change func(*tables)
		want   string
	}{
		{"no group", nil, nil, "no API group to load"},
		{"a group that does not exist", []string{"nfs"}, nil, "nfs: there is no such API group"},
		{"a group twice", []string{"system", "system"}, nil, "system: API group named twice"},
		{"a request field of another name", []string{"volume"}, dropField("MountVolume", "path", "target_path"), "volume MountVolume request: field path has no counterpart in v2alpha1.MountVolumeRequest"},
		{"a hub field that nothing fills", []string{"volume"}, dropField("ListVolumesOnDisk", "", "partition_number"), "field partition_number of the hub has no counterpart"},
		{"a request field that is dropped in silence", []string{"filesystem"}, dropField("*", "context", ""), "filesystem Rmdir request: field context has no counterpart"},
		{"a request field that is dropped without a reason", []string{"filesystem"}, changeField("*", "context", func(r *fieldRow) { r.why = "" }), "field context is left out without a reason"},
		{"a response field of another name", []string{"volume"}, dropField("VolumeStats", "volumeSize", "total_bytes"), "volume VolumeStats response: field volumeSize has no counterpart"},
		{"a field that becomes another kind", []string{"volume"}, changeField("ListVolumesOnDisk", "disk_id", func(r *fieldRow) { r.as = asIs }), "cannot become v2alpha1.ListVolumesOnDiskRequest.disk_number"},
		{"a number that would become narrower", []string{"volume"}, changeField("ListVolumesOnDisk", "disk_id", func(r *fieldRow) { r.as = asWider }), "cannot become v2alpha1.ListVolumesOnDiskRequest.disk_number"},
		{"two fields that become one", []string{"volume"}, changeField("VolumeStats", "volumeUsedSize", func(r *fieldRow) { r.hub = "total_bytes" }), "would overwrite total_bytes"},
		{"a field that becomes one of another meaning and kind", []string{"volume"}, changeField("ResizeVolume", "size", func(r *fieldRow) { r.hub = "volume_id" }), "would overwrite volume_id"},
		{"a method of another name", []string{"filesystem"}, func(tb *tables) {
			tb.methods = without(tb.methods, func(r methodRow) bool { return r.method == "LinkPath" })
		}, "the hub v2alpha1 has no operation LinkPath"},
		{"a method that becomes an unknown one", []string{"filesystem"}, func(tb *tables) {
			tb.methods = slices.Clone(tb.methods)
			tb.methods[methodAt(tb, "LinkPath")].operation = "Symlink"
		}, "the hub v2alpha1 has no operation Symlink"},
		{"a hub that does not exist", []string{"filesystem"}, func(tb *tables) {
			tb.methods = slices.Clone(tb.methods)
			tb.methods[methodAt(tb, "LinkPath")].hub = "v9"
		}, "find service v9.Filesystem"},
		{"an operation that nobody has listed", []string{"filesystem"}, func(tb *tables) {
			tb.operations = without(tb.operations, func(r operationRow) bool { return r.name == "Rmdir" })
		}, "operation Rmdir is not listed"},
		{"an operation that no version has", []string{"system"}, func(tb *tables) {
			tb.operations = append(slices.Clone(tb.operations), operationRow{"system", "Reboot", false})
		}, "operation Reboot is listed but no version has it"},
		{"a version that is not listed", []string{"filesystem"}, func(tb *tables) {
			tb.groups = []groupRow{{"filesystem", "Filesystem", []string{"v1alpha1", "v1beta1", "v1", "v2alpha1"}}}
		}, "version v1beta2 is published but not listed"},
		{"a version that is not published", []string{"system"}, func(tb *tables) {
			tb.groups = []groupRow{{"system", "System", []string{"v1alpha1", "v7"}}}
		}, "find service v7.System"},
		{"a text that nobody has classified", []string{"volume"}, func(tb *tables) {
			tb.classes = maps.Clone(tb.classes)
			delete(tb.classes, classKey{"volume", "mount"})
		}, "no table says whether v1beta1.VolumeIDFromMountRequest.mount may be recorded"},
		{"a text of a response that nobody has classified", []string{"system"}, func(tb *tables) {
			tb.classes = maps.Clone(tb.classes)
			delete(tb.classes, classKey{"system", "display_name"})
		}, "no table says whether v1alpha1.GetServiceResponse.display_name may be recorded"},
		{"an id of nothing", []string{"volume"}, func(tb *tables) {
			tb.classes = maps.Clone(tb.classes)
			tb.classes[classKey{"volume", "disk_id"}] = classID
		}, "no table says what v1alpha1.ListVolumesOnDiskRequest.disk_id names"},
		{"a class that does not exist", []string{"volume"}, func(tb *tables) {
			tb.classes = maps.Clone(tb.classes)
			tb.classes[classKey{"volume", "mount"}] = "harmless"
		}, "VolumeIDFromMountRequest.mount may be recorded"},
		{"entries of a map in a request", []string{"disk"}, changeField("ListDiskIDs", "diskIDs.identifiers", func(r *fieldRow) { r.part = inRequest }), "identifiers has no counterpart"},
		{"an entry that the hub does not have", []string{"disk"}, changeField("ListDiskIDs", "diskIDs.identifiers", func(r *fieldRow) { r.entries = []entryRow{{"nvme", "nvme"}} }), "has no text nvme"},
		{"an entry that is twice in a map", []string{"disk"}, changeField("ListDiskIDs", "diskIDs.identifiers", func(r *fieldRow) {
			r.entries = []entryRow{{"page83", "page83"}, {"serialNumber", "page83"}}
		}), "page83 is in another field already"},
		{"a field of the hub that is in no entry", []string{"disk"}, changeField("ListDiskIDs", "diskIDs.identifiers", func(r *fieldRow) { r.entries = r.entries[:1] }), "field diskIDs.serial_number of the hub has no counterpart"},
		{"entries of what is no map", []string{"disk"}, changeField("DiskStats", "diskSize", func(r *fieldRow) { r.entries = []entryRow{{"a", "total_bytes"}} }), "is not a map of texts in a response"},
		{"a disk number of another kind", []string{"disk"}, changeField("PartitionDisk", "diskID", func(r *fieldRow) { r.as = asIs }), "cannot become v1.PartitionDiskRequest.disk_number"},
		{"a secret that nobody has classified", []string{"smb"}, func(tb *tables) {
			tb.classes = maps.Clone(tb.classes)
			delete(tb.classes, classKey{"smb", "password"})
		}, "NewSmbGlobalMappingRequest.password may be recorded"},
		{"a text within a message that nobody has classified", []string{"iscsi"}, func(tb *tables) {
			tb.classes = maps.Clone(tb.classes)
			delete(tb.classes, classKey{"iscsi", "target_address"})
		}, "TargetPortal.target_address may be recorded"},
		{"a row for a method that is not there", []string{"volume"}, func(tb *tables) {
			tb.methods = append(slices.Clone(tb.methods), methodRow{group: "volume", method: "Mount", operation: "MountVolume"})
		}, "the row for method Mount matches nothing"},
		{"a row for a field that is not there", []string{"volume"}, func(tb *tables) {
			tb.fields = append(slices.Clone(tb.fields), fieldRow{group: "volume", method: "MountVolume", part: inRequest, served: "flags", why: "x"})
		}, `the row for MountVolume request "flags" -> "" matches nothing`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tb := published()
			if tt.change != nil {
				tt.change(&tb)
			}
			apis, err := load(tb, tt.groups)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error = %v, want %q", err, tt.want)
			}
			if apis != nil {
				t.Error("there is something to serve in spite of the error")
			}
		})
	}
}

func TestLoadReportsEveryFaultAtOnce(t *testing.T) {
	tb := published()
	tb.fields = nil
	_, err := load(tb, []string{"filesystem", "volume"})
	for _, want := range []string{"context", "is_mount_point", "disk_id", "partition_number", "volumeUsedSize", "mount", "size_bytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not speak of %s: %v", want, err)
		}
	}
}

func TestLoadServesOnlyWhatIsAskedFor(t *testing.T) {
	apis, err := Load("system")
	if err != nil {
		t.Fatal(err)
	}
	if len(apis) != 1 || apis[0].GroupVersion() != (GroupVersion{"system", "v1alpha1"}) {
		t.Errorf("loaded %d versions", len(apis))
	}
	if m, ok := apis[0].Method("Mkdir"); ok {
		t.Errorf("system has %s", m.FullMethod)
	}
}
