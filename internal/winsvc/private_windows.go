package winsvc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/filetrust"
)

// Descriptors of directories. Neither takes entries from the directory above: in C:\ProgramData those let every user
// make files.
const (
	// Only SYSTEM and administrators.
	privateSDDL = "D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
	// Others may read and run what is there.
	programsSDDL = "D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"
)

// MakePrivate makes a directory that only SYSTEM and administrators can open, or makes an existing one so. A directory
// that belongs to another account is refused: that account may have prepared its content, and may change its access again.
func MakePrivate(dir string) error {
	if err := create(dir, privateSDDL); !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory, or is a link to one", dir)
	}
	if err := filetrust.Owner(dir); err != nil {
		return err
	}
	return setAccess(dir, privateSDDL)
}

// MakePrograms makes a directory for programs that only SYSTEM and administrators can change. One that is there stays
// as it is, since it may be anything, C:\Program Files itself included.
func MakePrograms(dir string) error {
	if err := create(dir, programsSDDL); !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return err
	}
	return nil
}

// create makes a directory with an access list of its own from its first moment.
func create(dir, sddl string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { // #nosec G301 -- access comes from the directory above
		return err
	}
	name, attributes, err := withAccess(dir, sddl)
	if err == nil {
		err = windows.CreateDirectory(name, attributes)
	}
	if err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	return nil
}

// withAccess returns a path and a security descriptor in the form in which functions of Windows take them.
func withAccess(path, sddl string) (name *uint16, attributes *windows.SecurityAttributes, err error) {
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return nil, nil, err
	}
	attributes = &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	name, err = windows.UTF16PtrFromString(path)
	return name, attributes, err
}

// Of files. A file passes nothing on.
const privateFileSDDL = "D:PAI(A;;FA;;;SY)(A;;FA;;;BA)"

// CreatePrivate makes a file that must not exist, and that only SYSTEM and administrators can open from its first moment.
func CreatePrivate(file string) (*os.File, error) {
	name, attributes, err := withAccess(file, privateFileSDDL)
	if err != nil {
		return nil, fmt.Errorf("make file %s: %w", file, err)
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, 0, attributes, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, fmt.Errorf("make file %s: %w", file, err)
	}
	return os.NewFile(uintptr(handle), file), nil
}

// MakeFilePrivate lets only SYSTEM and administrators open a file, which must belong to one of them or to this account.
func MakeFilePrivate(file string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a link, or no file", file)
	}
	for _, path := range []string{filepath.Dir(file), file} {
		if err := filetrust.Owner(path); err != nil {
			return err
		}
	}
	return setAccess(file, privateFileSDDL)
}

// setAccess gives a file or directory the access list of a descriptor, and no entries of the directory above.
func setAccess(path, sddl string) error {
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return err
	}
	list, _, err := descriptor.DACL()
	if err != nil {
		return err
	}
	if now, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION); err == nil && now.String() == sddl {
		return nil
	}
	const what = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION
	if err := windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, what, nil, nil, list, nil); err != nil {
		return fmt.Errorf("set access list of %s: %w", path, err)
	}
	return nil
}
