package apiserver

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

func TestOldDiskVersionsSpeakOfDisksAsText(t *testing.T) {
	old, _ := find(t, "disk", "v1alpha1", "Rescan")
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

func TestOldVersionsAlwaysNameBothIDsOfADisk(t *testing.T) {
	answer := &diskv1.ListDiskIDsResponse{DiskIDs: map[uint32]*diskv1.DiskIDs{
		0: {}, 7: {Page83: "p"}, 1<<32 - 1: {Page83: "p", SerialNumber: "s"},
	}}
	want := map[string]map[string]string{
		"0": {"page83": "", "serialNumber": ""}, "7": {"page83": "p", "serialNumber": ""}, "4294967295": {"page83": "p", "serialNumber": "s"},
	}
	for version, list := range map[string]func(*grpc.ClientConn) (map[string]map[string]string, error){
		"v1beta1": func(c *grpc.ClientConn) (map[string]map[string]string, error) {
			r, err := diskv1beta1.NewDiskClient(c).ListDiskIDs(t.Context(), &diskv1beta1.ListDiskIDsRequest{})
			got := map[string]map[string]string{}
			for disk, ids := range r.GetDiskIDs() {
				got[disk] = ids.GetIdentifiers()
			}
			return got, err
		},
		"v1beta2": func(c *grpc.ClientConn) (map[string]map[string]string, error) {
			r, err := diskv1beta2.NewDiskClient(c).ListDiskIDs(t.Context(), &diskv1beta2.ListDiskIDsRequest{})
			got := map[string]map[string]string{}
			for disk, ids := range r.GetDiskIDs() {
				got[disk] = ids.GetIdentifiers()
			}
			return got, err
		},
	} {
		a, _ := find(t, "disk", version, "ListDiskIDs")
		got, err := list(serve(t, a, func(context.Context, *Call) (proto.Message, error) { return answer, nil }, nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
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
