package main

import (
	"context"
	"maps"
	"slices"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsi "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	system "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
)

// knownService is a service that every Windows has, and without which none runs.
const knownService = "RpcSs"

// all performs the read-only operations of every group.
func (a *asker) all(ctx context.Context, directories []string) []answer {
	disks := a.disk(ctx)
	a.filesystem(ctx, directories)
	a.volume(ctx, disks, directories)
	a.nothing("smb", "the group has no read-only operation")
	a.ask(ctx, "iscsi", "ListTargetPortals", &iscsi.ListTargetPortalsRequest{})
	a.ask(ctx, "system", "GetBIOSSerialNumber", &system.GetBIOSSerialNumberRequest{})
	a.ask(ctx, "system", "GetService", &system.GetServiceRequest{Name: knownService})
	return a.answers
}

func (a *asker) disk(ctx context.Context) (numbers []uint32) {
	a.ask(ctx, "disk", "ListDiskLocations", &disk.ListDiskLocationsRequest{})
	ids, _ := a.ask(ctx, "disk", "ListDiskIDs", &disk.ListDiskIDsRequest{}).(*disk.ListDiskIDsResponse)
	numbers = slices.Sorted(maps.Keys(ids.GetDiskIDs()))
	for _, n := range numbers {
		a.ask(ctx, "disk", "GetDiskStats", &disk.GetDiskStatsRequest{DiskNumber: n})
		a.ask(ctx, "disk", "GetDiskState", &disk.GetDiskStateRequest{DiskNumber: n})
	}
	if len(numbers) == 0 {
		a.nothing("disk", "no disks were named")
	}
	return numbers
}

func (a *asker) filesystem(ctx context.Context, directories []string) {
	for _, dir := range directories {
		there, _ := a.ask(ctx, "filesystem", "PathExists", &filesystem.PathExistsRequest{Path: dir}).(*filesystem.PathExistsResponse)
		if there.GetExists() {
			a.ask(ctx, "filesystem", "IsSymlink", &filesystem.IsSymlinkRequest{Path: dir})
		}
	}
}

func (a *asker) volume(ctx context.Context, disks []uint32, directories []string) {
	found := false
	for _, n := range disks {
		list, _ := a.ask(ctx, "volume", "ListVolumesOnDisk", &volume.ListVolumesOnDiskRequest{DiskNumber: n}).(*volume.ListVolumesOnDiskResponse)
		for _, id := range list.GetVolumeIds() {
			found = true
			is, _ := a.ask(ctx, "volume", "IsVolumeFormatted", &volume.IsVolumeFormattedRequest{VolumeId: id}).(*volume.IsVolumeFormattedResponse)
			if is.GetFormatted() {
				a.ask(ctx, "volume", "GetVolumeStats", &volume.GetVolumeStatsRequest{VolumeId: id})
			}
			a.ask(ctx, "volume", "GetDiskNumberFromVolumeID", &volume.GetDiskNumberFromVolumeIDRequest{VolumeId: id})
		}
	}
	if !found {
		a.nothing("volume", "no volumes were named")
	}
	for _, dir := range directories {
		a.ask(ctx, "volume", "GetClosestVolumeIDFromTargetPath", &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: dir})
	}
}
