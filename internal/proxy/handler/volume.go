package handler

import (
	"context"

	api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

type volume struct {
	host  Volume
	roots *safepath.Roots
}

func (v volume) operations() map[string]operation {
	id, mounted := required("volume id empty", ParseVolumeID), required("MountVolumeRequest.VolumeId is empty", ParseVolumeID)
	target := required("target path is empty", v.roots.Check)
	return map[string]operation{
		"ListVolumesOnDisk":                typed(v.list),
		"MountVolume":                      permitted((*api.MountVolumeRequest).GetVolumeId, mounted, v.mount),
		"UnmountVolume":                    on((*api.UnmountVolumeRequest).GetVolumeId, id, v.unmount),
		"IsVolumeFormatted":                on((*api.IsVolumeFormattedRequest).GetVolumeId, id, v.isFormatted),
		"FormatVolume":                     permitted((*api.FormatVolumeRequest).GetVolumeId, id, v.format),
		"ResizeVolume":                     permitted((*api.ResizeVolumeRequest).GetVolumeId, id, v.resize),
		"GetVolumeStats":                   on((*api.GetVolumeStatsRequest).GetVolumeId, id, v.stats),
		"GetDiskNumberFromVolumeID":        on((*api.GetDiskNumberFromVolumeIDRequest).GetVolumeId, id, v.diskNumber),
		"GetVolumeIDFromTargetPath":        on((*api.GetVolumeIDFromTargetPathRequest).GetTargetPath, target, v.idFromTargetPath),
		"GetClosestVolumeIDFromTargetPath": on((*api.GetClosestVolumeIDFromTargetPathRequest).GetTargetPath, target, v.closestIDFromTargetPath),
		"WriteVolumeCache":                 on((*api.WriteVolumeCacheRequest).GetVolumeId, id, v.writeCache),
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

func (v volume) mount(ctx context.Context, id VolumeID, r *api.MountVolumeRequest, permits Permits) (*api.MountVolumeResponse, error) {
	target, err := required("MountVolumeRequest.TargetPath is empty", v.roots.CheckVolume)(r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	return &api.MountVolumeResponse{}, v.host.MountVolume(ctx, id, target, permits)
}

func (v volume) unmount(ctx context.Context, id VolumeID, r *api.UnmountVolumeRequest) (*api.UnmountVolumeResponse, error) {
	target, err := required("target path empty", v.roots.CheckVolume)(r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	return &api.UnmountVolumeResponse{}, v.host.UnmountVolume(ctx, id, target)
}

func (v volume) isFormatted(ctx context.Context, id VolumeID, _ *api.IsVolumeFormattedRequest) (*api.IsVolumeFormattedResponse, error) {
	formatted, err := v.host.IsVolumeFormatted(ctx, id)
	return &api.IsVolumeFormattedResponse{Formatted: formatted}, err
}

func (v volume) format(ctx context.Context, id VolumeID, _ *api.FormatVolumeRequest, permits Permits) (*api.FormatVolumeResponse, error) {
	return &api.FormatVolumeResponse{}, v.host.FormatVolume(ctx, id, permits)
}

func (v volume) resize(ctx context.Context, id VolumeID, r *api.ResizeVolumeRequest, permits Permits) (*api.ResizeVolumeResponse, error) {
	if r.GetSizeBytes() < 0 {
		return nil, invalid("size %d of volume %s is negative", r.GetSizeBytes(), id)
	}
	return &api.ResizeVolumeResponse{}, v.host.ResizeVolume(ctx, id, r.GetSizeBytes(), permits)
}

func (v volume) stats(ctx context.Context, id VolumeID, _ *api.GetVolumeStatsRequest) (*api.GetVolumeStatsResponse, error) {
	stats, err := v.host.GetVolumeStats(ctx, id)
	return &api.GetVolumeStatsResponse{TotalBytes: stats.Total, UsedBytes: stats.Used}, err
}

func (v volume) diskNumber(ctx context.Context, id VolumeID, _ *api.GetDiskNumberFromVolumeIDRequest) (*api.GetDiskNumberFromVolumeIDResponse, error) {
	disk, err := v.host.DiskNumber(ctx, id)
	return &api.GetDiskNumberFromVolumeIDResponse{DiskNumber: disk}, err
}

func (v volume) idFromTargetPath(ctx context.Context, target safepath.Path, _ *api.GetVolumeIDFromTargetPathRequest) (*api.GetVolumeIDFromTargetPathResponse, error) {
	id, err := v.host.VolumeIDFromTargetPath(ctx, target)
	return &api.GetVolumeIDFromTargetPathResponse{VolumeId: string(id)}, err
}

func (v volume) closestIDFromTargetPath(ctx context.Context, target safepath.Path, _ *api.GetClosestVolumeIDFromTargetPathRequest) (*api.GetClosestVolumeIDFromTargetPathResponse, error) {
	id, err := v.host.ClosestVolumeIDFromTargetPath(ctx, target)
	return &api.GetClosestVolumeIDFromTargetPathResponse{VolumeId: string(id)}, err
}

func (v volume) writeCache(ctx context.Context, id VolumeID, _ *api.WriteVolumeCacheRequest) (*api.WriteVolumeCacheResponse, error) {
	return &api.WriteVolumeCacheResponse{}, v.host.WriteVolumeCache(ctx, id)
}
