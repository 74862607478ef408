package winhost

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// openAt opens or makes one name in an open directory and never what a reparse point under that name leads to.
// An empty name is the directory itself.
// https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntcreatefile
func openAt(parent windows.Handle, name string, access, disposition, options uint32) (windows.Handle, error) {
	return openSharing(parent, name, access, shareAll, disposition, options)
}

// openSharing is openAt with a say in what others may open it for meanwhile.
func openSharing(parent windows.Handle, name string, access, share, disposition, options uint32) (windows.Handle, error) {
	if name != "" {
		if err := checkName(name); err != nil {
			return 0, err
		}
	}
	object, err := windows.NewNTUnicodeString(name)
	if err != nil {
		return 0, err
	}
	attributes := windows.OBJECT_ATTRIBUTES{
		RootDirectory: parent,
		ObjectName:    object,
		Attributes:    windows.OBJ_CASE_INSENSITIVE,
	}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	var handle windows.Handle
	var status windows.IO_STATUS_BLOCK
	err = windows.NtCreateFile(&handle, access|windows.SYNCHRONIZE, &attributes, &status, nil,
		windows.FILE_ATTRIBUTE_NORMAL, share, disposition,
		options|windows.FILE_OPEN_REPARSE_POINT|windows.FILE_SYNCHRONOUS_IO_NONALERT, 0, 0)
	if err != nil {
		return 0, errno(err)
	}
	return handle, nil
}

// errno turns a status of the kernel into the error of the same meaning that package os knows.
func errno(err error) error {
	if status, ok := errors.AsType[windows.NTStatus](err); ok {
		return status.Errno()
	}
	return err
}

// describe says what a handle was opened on.
// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_attribute_tag_info
func describe(handle windows.Handle) (entry, error) {
	var info struct{ attributes, tag uint32 }
	err := windows.GetFileInformationByHandleEx(handle, windows.FileAttributeTagInfo, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return entry{}, err
	}
	e := entry{kind: file, directory: info.attributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0}
	switch {
	case info.attributes&windows.FILE_ATTRIBUTE_REPARSE_POINT == 0:
		if e.directory {
			e.kind = directory
		}
	case info.tag == tagSymlink:
		e.kind = link
	case info.tag == tagMountPoint:
		e.kind = mount
	default:
		e.kind = other
	}
	return e, nil
}

// finalPath is where a handle leads, on its volume as the kernel names it: asking for a drive
// letter would ask the mount manager, and not every volume has one.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfinalpathnamebyhandlew
func finalPath(handle windows.Handle) (string, error) {
	const volumeNameNT = 0x2 // and FILE_NAME_NORMALIZED, which is 0: long names, not 8.3
	return pathOf(handle, volumeNameNT)
}

func pathOf(handle windows.Handle, form uint32) (string, error) {
	path := make([]uint16, windows.MAX_PATH)
	for {
		n, err := windows.GetFinalPathNameByHandle(handle, &path[0], uint32(len(path)), form) // #nosec G115 -- it grows to what the kernel asked for
		if err != nil {
			return "", err
		}
		if int(n) < len(path) {
			return windows.UTF16ToString(path[:n]), nil
		}
		path = make([]uint16, n+1)
	}
}
