package handler

import (
	"context"

	api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

type volume struct {
	host  Volume
	paths paths
}

func (v volume) operations() map[string]operation {
	return map[string]operation{
		"ListVolumesOnDisk":                typed(v.list),
		"MountVolume":                      permitted(v.mount),
		"UnmountVolume":                    typed(v.unmount),
		"IsVolumeFormatted":                typed(v.isFormatted),
		"FormatVolume":                     permitted(v.format),
		"ResizeVolume":                     permitted(v.resize),
		"GetVolumeStats":                   typed(v.stats),
		"GetDiskNumberFromVolumeID":        typed(v.diskNumber),
		"GetVolumeIDFromTargetPath":        typed(v.idFromTargetPath),
		"GetClosestVolumeIDFromTargetPath": typed(v.closestIDFromTargetPath),
		"WriteVolumeCache":                 typed(v.writeCache),
	}
}

func (v volume) list(ctx context.Context, r *api.ListVolumesOnDiskRequest) (*api.ListVolumesOnDiskResponse, error) {
	ids, err := v.host.ListVolumesOnDisk(ctx, r.GetDiskNumber(), r.GetPartitionNumber())
	response := &api.ListVolumesOnDiskResponse{}
	for _, id := range ids {
		response.VolumeIds = append(response.VolumeIds, string(id))
	}
	return response, err
}

func (v volume) mount(ctx context.Context, r *api.MountVolumeRequest, permits Permits) (*api.MountVolumeResponse, error) {
	id, err := volumeID(r.GetVolumeId(), "MountVolumeRequest.VolumeId is empty")
	if err != nil {
		return nil, err
	}
	target, err := v.target(r.GetTargetPath(), "MountVolumeRequest.TargetPath is empty", v.paths.ofVolume)
	if err != nil {
		return nil, err
	}
	return &api.MountVolumeResponse{}, v.host.MountVolume(ctx, id, target, permits)
}

func (v volume) unmount(ctx context.Context, r *api.UnmountVolumeRequest) (*api.UnmountVolumeResponse, error) {
	id, err := volumeID(r.GetVolumeId(), volumeIDEmpty)
	if err != nil {
		return nil, err
	}
	target, err := v.target(r.GetTargetPath(), "target path empty", v.paths.ofVolume)
	if err != nil {
		return nil, err
	}
	return &api.UnmountVolumeResponse{}, v.host.UnmountVolume(ctx, id, target)
}

func (v volume) isFormatted(ctx context.Context, r *api.IsVolumeFormattedRequest) (*api.IsVolumeFormattedResponse, error) {
	id, err := volumeID(r.GetVolumeId(), volumeIDEmpty)
	if err != nil {
		return nil, err
	}
	formatted, err := v.host.IsVolumeFormatted(ctx, id)
	return &api.IsVolumeFormattedResponse{Formatted: formatted}, err
}

func (v volume) format(ctx context.Context, r *api.FormatVolumeRequest, permits Permits) (*api.FormatVolumeResponse, error) {
	id, err := volumeID(r.GetVolumeId(), volumeIDEmpty)
	if err != nil {
		return nil, err
	}
	return &api.FormatVolumeResponse{}, v.host.FormatVolume(ctx, id, permits)
}

func (v volume) resize(ctx context.Context, r *api.ResizeVolumeRequest, permits Permits) (*api.ResizeVolumeResponse, error) {
	id, err := volumeID(r.GetVolumeId(), volumeIDEmpty)
	if err != nil {
		return nil, err
	}
	if r.GetSizeBytes() < 0 {
		return nil, invalid("size %d of volume %s is negative", r.GetSizeBytes(), id)
	}
	return &api.ResizeVolumeResponse{}, v.host.ResizeVolume(ctx, id, r.GetSizeBytes(), permits)
}

func (v volume) stats(ctx context.Context, r *api.GetVolumeStatsRequest) (*api.GetVolumeStatsResponse, error) {
	id, err := volumeID(r.GetVolumeId(), volumeIDEmpty)
	if err != nil {
		return nil, err
	}
	stats, err := v.host.GetVolumeStats(ctx, id)
	return &api.GetVolumeStatsResponse{TotalBytes: stats.Total, UsedBytes: stats.Used}, err
}

func (v volume) diskNumber(ctx context.Context, r *api.GetDiskNumberFromVolumeIDRequest) (*api.GetDiskNumberFromVolumeIDResponse, error) {
	id, err := volumeID(r.GetVolumeId(), volumeIDEmpty)
	if err != nil {
		return nil, err
	}
	disk, err := v.host.DiskNumber(ctx, id)
	return &api.GetDiskNumberFromVolumeIDResponse{DiskNumber: disk}, err
}

func (v volume) idFromTargetPath(ctx context.Context, r *api.GetVolumeIDFromTargetPathRequest) (*api.GetVolumeIDFromTargetPathResponse, error) {
	target, err := v.target(r.GetTargetPath(), targetPathEmpty, v.paths.within)
	if err != nil {
		return nil, err
	}
	id, err := v.host.VolumeIDFromTargetPath(ctx, target)
	return &api.GetVolumeIDFromTargetPathResponse{VolumeId: string(id)}, err
}

func (v volume) closestIDFromTargetPath(ctx context.Context, r *api.GetClosestVolumeIDFromTargetPathRequest) (*api.GetClosestVolumeIDFromTargetPathResponse, error) {
	target, err := v.target(r.GetTargetPath(), targetPathEmpty, v.paths.within)
	if err != nil {
		return nil, err
	}
	id, err := v.host.ClosestVolumeIDFromTargetPath(ctx, target)
	return &api.GetClosestVolumeIDFromTargetPathResponse{VolumeId: string(id)}, err
}

func (v volume) writeCache(ctx context.Context, r *api.WriteVolumeCacheRequest) (*api.WriteVolumeCacheResponse, error) {
	id, err := volumeID(r.GetVolumeId(), volumeIDEmpty)
	if err != nil {
		return nil, err
	}
	return &api.WriteVolumeCacheResponse{}, v.host.WriteVolumeCache(ctx, id)
}

// Error texts of the old servers for empty fields. They differ from one operation to the next.
const (
	volumeIDEmpty   = "volume id empty"
	targetPathEmpty = "target path is empty"
)

func volumeID(s, empty string) (VolumeID, error) {
	if s == "" {
		return "", &InvalidError{empty}
	}
	return ParseVolumeID(s)
}

func (v volume) target(s, empty string, check func(string) (safepath.Path, error)) (safepath.Path, error) {
	if s == "" {
		return safepath.Path{}, &InvalidError{empty}
	}
	return check(s)
}
