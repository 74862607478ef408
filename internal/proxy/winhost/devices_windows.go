package winhost

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Control codes of storage devices, which x/sys does not name.
const (
	ioctlStorageQueryProperty   = 0x2D1400
	ioctlStorageGetDeviceNumber = 0x2D1080

	storageDeviceIDProperty = 2
	fileDeviceDisk          = 7
)

// deviceDrivers asks the drivers of disks.
type deviceDrivers struct{}

// Describe opens a disk without the right to read it: a question to its driver needs none, and does not fail while another program has exclusive access.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_storage_query_property
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_storage_get_device_number
func (deviceDrivers) Describe(path string) (number uint32, descriptor []byte, err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, nil, failed("CreateFileW", path, err)
	}
	handle, err := windows.CreateFile(name, 0, shareAll, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return 0, nil, failed("CreateFileW", path, err)
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(handle)) }()
	var device struct{ kind, number, partition uint32 }
	var n uint32
	err = windows.DeviceIoControl(handle, ioctlStorageGetDeviceNumber, nil, 0, (*byte)(unsafe.Pointer(&device)), uint32(unsafe.Sizeof(device)), &n, nil)
	if err != nil {
		return 0, nil, failed("IOCTL_STORAGE_GET_DEVICE_NUMBER", path, err)
	}
	if n < uint32(unsafe.Sizeof(device)) || device.kind != fileDeviceDisk {
		return 0, nil, fmt.Errorf("%s is device type %d, not a disk", path, device.kind)
	}
	query := struct{ property, kind, more uint32 }{property: storageDeviceIDProperty}
	descriptor = make([]byte, 4096)
	err = windows.DeviceIoControl(handle, ioctlStorageQueryProperty, (*byte)(unsafe.Pointer(&query)), uint32(unsafe.Sizeof(query)),
		&descriptor[0], uint32(len(descriptor)), &n, nil) // #nosec G115 -- a constant
	if err != nil {
		return 0, nil, failed("IOCTL_STORAGE_QUERY_PROPERTY", path, err)
	}
	return device.number, descriptor[:min(int(n), len(descriptor))], nil
}
