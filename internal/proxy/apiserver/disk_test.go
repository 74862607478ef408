package apiserver

import (
	"context"
	"slices"
	"testing"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// disks are tables of a group that is not served: they show that rows alone can express it.
func disks() tables {
	t := tables{
		groups: []groupRow{{"disk", "Disk", []string{"v1alpha1", "v1"}}},
		methods: []methodRow{
			{group: "disk", method: "GetDiskNumberByName", operation: "GetDiskNumberByName", hub: "v1alpha1"},
		},
		fields: []fieldRow{
			{group: "disk", method: "PartitionDisk", part: inRequest, served: "diskID", hub: "disk_number", as: asDecimal},
			{group: "disk", method: "ListDiskLocations", part: inResponse, served: "disk_locations", hub: "disk_locations", as: asDecimal},
		},
		classes: map[classKey]class{},
	}
	for _, op := range []string{"ListDiskLocations", "PartitionDisk", "Rescan", "GetDiskNumberByName", "ListDiskIDs", "GetDiskStats", "SetDiskState", "GetDiskState"} {
		t.operations = append(t.operations, operationRow{"disk", op, op != "PartitionDisk" && op != "SetDiskState" && op != "Rescan"})
	}
	for _, text := range []string{"disk_locations", "Adapter", "Bus", "Target", "LUNID", "diskID", "disk_name", "disk_number", "page83", "serial_number"} {
		t.classes[classKey{"disk", protoreflectName(text)}] = classPublic
	}
	return t
}

func TestRowsCanExpressTheDiskGroup(t *testing.T) {
	apis, err := load(disks(), []string{"disk"})
	if err != nil {
		t.Fatal(err)
	}
	old := apis[slices.IndexFunc(apis, func(a *API) bool { return a.GroupVersion().Version == "v1alpha1" })]
	var seen []uint32
	conn := serve(t, old, func(_ context.Context, c *Call) (proto.Message, error) {
		switch c.Operation.Name {
		case "PartitionDisk":
			seen = append(seen, c.Request.(*diskv1.PartitionDiskRequest).GetDiskNumber())
			return &diskv1.PartitionDiskResponse{}, nil
		case "ListDiskLocations":
			return &diskv1.ListDiskLocationsResponse{DiskLocations: map[uint32]*diskv1.DiskLocation{7: {Adapter: "a", LUNID: "l"}, 1<<32 - 1: {}}}, nil
		case "GetDiskNumberByName":
			return protoadapt.MessageV2Of(&diskv1alpha1.GetDiskNumberByNameResponse{DiskNumber: "3"}), nil
		}
		return nil, status.Error(codes.Unimplemented, c.Operation.Name)
	}, nil)
	client := diskv1alpha1.NewDiskClient(conn)

	for _, bad := range []string{"", "4294967297", "-1", "1 "} {
		if _, err := client.PartitionDisk(t.Context(), &diskv1alpha1.PartitionDiskRequest{DiskID: bad}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("disk %q: %v", bad, err)
		}
	}
	if _, err := client.PartitionDisk(t.Context(), &diskv1alpha1.PartitionDiskRequest{DiskID: "5"}); err != nil || !slices.Equal(seen, []uint32{5}) {
		t.Errorf("partitioned %v, %v", seen, err)
	}
	locations, err := client.ListDiskLocations(t.Context(), &diskv1alpha1.ListDiskLocationsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got := locations.GetDiskLocations(); len(got) != 2 || got["7"].GetAdapter() != "a" || got["7"].GetLUNID() != "l" || got["4294967295"] == nil {
		t.Errorf("locations = %v", got)
	}
	number, err := client.GetDiskNumberByName(t.Context(), &diskv1alpha1.GetDiskNumberByNameRequest{DiskName: "d"})
	if err != nil || number.GetDiskNumber() != "3" {
		t.Errorf("number = %v, %v", number, err)
	}
}

func TestMapKeysThatBecomeOneAreRefused(t *testing.T) {
	key := func(s string) *diskv1alpha1.ListDiskLocationsResponse {
		return &diskv1alpha1.ListDiskLocationsResponse{DiskLocations: map[string]*diskv1alpha1.DiskLocation{"1": {}, s: {}}}
	}
	served := protoadapt.MessageV2Of(key("01")).ProtoReflect()
	hub := (&diskv1.ListDiskLocationsResponse{}).ProtoReflect()
	// The other way round than on a pipe: text keys are read.
	p, err := compile(served.Descriptor(), hub.Descriptor(), inRequest,
		fieldRow{group: "g", method: "M", part: inRequest, served: "disk_locations", hub: "disk_locations", as: asDecimal})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"01", "x", "4294967296"} {
		if err := p.apply((&diskv1.ListDiskLocationsResponse{}).ProtoReflect(), protoadapt.MessageV2Of(key(bad)).ProtoReflect()); err == nil {
			t.Errorf("keys 1 and %s were taken", bad)
		}
	}
	if err := p.apply(hub, protoadapt.MessageV2Of(key("2")).ProtoReflect()); err != nil {
		t.Error(err)
	}
}
