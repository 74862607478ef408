package handler

import (
	"context"
	"slices"
	"strconv"

	api "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	first "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

type disk struct{ host Disk }

func (d disk) operations() map[string]operation {
	return map[string]operation{
		"ListDiskLocations":   typed(d.locations),
		"ListDiskIDs":         typed(d.ids),
		"GetDiskNumberByName": typed(d.numberByName),
		"PartitionDisk":       called(d.partition),
		"Rescan":              typed(d.rescan),
		"GetDiskStats":        typed(d.stats),
		"GetDiskState":        typed(d.state),
		"SetDiskState":        called(d.setState),
	}
}

func (d disk) locations(ctx context.Context, _ *api.ListDiskLocationsRequest) (*api.ListDiskLocationsResponse, error) {
	locations, err := d.host.ListDiskLocations(ctx)
	response := &api.ListDiskLocationsResponse{DiskLocations: make(map[uint32]*api.DiskLocation, len(locations))}
	for number, at := range locations {
		response.DiskLocations[number] = &api.DiskLocation{Adapter: at.Adapter, Bus: at.Bus, Target: at.Target, LUNID: at.LUN}
	}
	return response, err
}

func (d disk) ids(ctx context.Context, _ *api.ListDiskIDsRequest) (*api.ListDiskIDsResponse, error) {
	ids, err := d.host.ListDiskIDs(ctx)
	response := &api.ListDiskIDsResponse{DiskIDs: make(map[uint32]*api.DiskIDs, len(ids))}
	for number, id := range ids {
		response.DiskIDs[number] = &api.DiskIDs{Page83: id.Page83, SerialNumber: id.SerialNumber}
	}
	return response, err
}

// numberByName finds a disk by the whole of its page 83 id; of several paths to one disk it takes the lowest number.
// An empty name would be that of every disk that has no id.
func (d disk) numberByName(ctx context.Context, r *first.GetDiskNumberByNameRequest) (*first.GetDiskNumberByNameResponse, error) {
	switch name := r.GetDiskName(); {
	case name == "":
		return nil, invalid("disk name empty")
	case len(name) > maxDiskName:
		return nil, invalid("disk name %s is longer than %d bytes", quoted(name), maxDiskName)
	}
	ids, err := d.host.ListDiskIDs(ctx)
	if err != nil {
		return nil, err
	}
	var found []uint32
	for number, id := range ids {
		if id.Page83 == r.GetDiskName() {
			found = append(found, number)
		}
	}
	if len(found) == 0 {
		return nil, NotFound("could not find disk with Page83 ID %s: not found", shown(r.GetDiskName()))
	}
	return &first.GetDiskNumberByNameResponse{DiskNumber: decimal(slices.Min(found))}, nil
}

// maxDiskName is twice the size of the longest identifier in page 83, in hexadecimal digits (SPC-5, 7.7.6).
const maxDiskName = 2 * 255

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func (d disk) partition(ctx context.Context, r *api.PartitionDiskRequest, call *apiserver.Call) (*api.PartitionDiskResponse, error) {
	return &api.PartitionDiskResponse{}, d.host.PartitionDisk(ctx, r.GetDiskNumber(), call.Permits)
}

func (d disk) rescan(ctx context.Context, _ *api.RescanRequest) (*api.RescanResponse, error) {
	return &api.RescanResponse{}, d.host.Rescan(ctx)
}

func (d disk) stats(ctx context.Context, r *api.GetDiskStatsRequest) (*api.GetDiskStatsResponse, error) {
	size, err := d.host.DiskSize(ctx, r.GetDiskNumber())
	return &api.GetDiskStatsResponse{TotalBytes: size}, err
}

func (d disk) state(ctx context.Context, r *api.GetDiskStateRequest) (*api.GetDiskStateResponse, error) {
	online, err := d.host.IsDiskOnline(ctx, r.GetDiskNumber())
	return &api.GetDiskStateResponse{IsOnline: online}, err
}

func (d disk) setState(ctx context.Context, r *api.SetDiskStateRequest, call *apiserver.Call) (*api.SetDiskStateResponse, error) {
	return &api.SetDiskStateResponse{}, d.host.SetDiskOnline(ctx, r.GetDiskNumber(), r.GetIsOnline(), call.Permits)
}
