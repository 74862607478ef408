package winhost

import (
	"errors"
	"slices"

	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// mountManager is the mount manager of this host. Writing the reparse point by handle would not do: the mount manager
// would not know of the mount point, and neither would what asks it for the paths of a volume.
type mountManager struct{}

// Set is https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw.
func (mountManager) Set(path string, id handler.VolumeID) error {
	point, err := windows.UTF16PtrFromString(path + `\`)
	if err != nil {
		return failed("SetVolumeMountPointW", path, err)
	}
	volume, err := windows.UTF16PtrFromString(string(id))
	if err != nil {
		return failed("SetVolumeMountPointW", path, err)
	}
	return failed("SetVolumeMountPointW", path, windows.SetVolumeMountPoint(point, volume))
}

// Delete is https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-deletevolumemountpointw.
func (mountManager) Delete(path string) error {
	point, err := windows.UTF16PtrFromString(path + `\`)
	if err != nil {
		return failed("DeleteVolumeMountPointW", path, err)
	}
	return failed("DeleteVolumeMountPointW", path, windows.DeleteVolumeMountPoint(point))
}

// Paths is https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumepathnamesforvolumenamew.
func (mountManager) Paths(id handler.VolumeID) ([]string, error) {
	const function = "GetVolumePathNamesForVolumeNameW"
	volume, err := windows.UTF16PtrFromString(string(id))
	if err != nil {
		return nil, failed(function, string(id), err)
	}
	list := make([]uint16, windows.MAX_PATH)
	for {
		var size uint32
		err := windows.GetVolumePathNamesForVolumeName(volume, &list[0], uint32(len(list)), &size) // #nosec G115 -- it grows to what the system asked for
		if errors.Is(err, windows.ERROR_MORE_DATA) && int(size) > len(list) {
			list = make([]uint16, size)
			continue
		}
		if err != nil {
			return nil, failed(function, string(id), err)
		}
		return texts(list), nil
	}
}

// texts takes a list apart whose entries end in a zero each, and that ends in an empty one.
func texts(list []uint16) (found []string) {
	for len(list) > 0 && list[0] != 0 {
		text := windows.UTF16ToString(list)
		found = append(found, text)
		end := slices.Index(list, 0)
		if end < 0 {
			break
		}
		list = list[end+1:]
	}
	return found
}

// At is https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumenameforvolumemountpointw.
func (mountManager) At(path string) (handler.VolumeID, error) {
	point, err := windows.UTF16PtrFromString(path + `\`)
	if err != nil {
		return "", failed("GetVolumeNameForVolumeMountPointW", path, err)
	}
	name := make([]uint16, 64)                                                                           // 50 are the most that it needs
	if err := windows.GetVolumeNameForVolumeMountPoint(point, &name[0], uint32(len(name))); err != nil { // #nosec G115 -- a constant
		return "", failed("GetVolumeNameForVolumeMountPointW", path, err)
	}
	return handler.ParseVolumeID(windows.UTF16ToString(name))
}
