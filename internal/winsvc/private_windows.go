package winsvc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
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
// that belongs to somebody else is refused: whoever made it may have prepared what is in it, and may change its access again.
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
	if err := checkOwner(dir); err != nil {
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
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	attributes := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	if err := windows.CreateDirectory(name, attributes); err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	return nil
}

// CheckOwners refuses a file that somebody else than SYSTEM, administrators and this account may have put where it is: one
// that is a link, and one that belongs, or whose directory belongs, to another. In C:\ProgramData every user may make
// files and directories. A file that is not there is no error.
func CheckOwners(file string) error {
	for _, path := range []string{filepath.Dir(file), file} {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is a link, or no file", path)
		}
		if err := checkOwner(path); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner accepts what belongs to SYSTEM, to administrators or to this account.
func checkOwner(dir string) error {
	descriptor, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("owner of %s: %w", dir, err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return fmt.Errorf("owner of %s: %w", dir, err)
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("this process's account: %w", err)
	}
	if owner.IsWellKnown(windows.WinLocalSystemSid) || owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) || owner.Equals(user.User.Sid) {
		return nil
	}
	return fmt.Errorf("%s belongs to %s and not to SYSTEM or administrators: look at what is in it, and remove it", dir, owner)
}

// Of files. A file passes nothing on.
const privateFileSDDL = "D:PAI(A;;FA;;;SY)(A;;FA;;;BA)"

// CreatePrivate makes a file that must not exist, and that only SYSTEM and administrators can open from its first moment.
func CreatePrivate(file string) (*os.File, error) {
	descriptor, err := windows.SecurityDescriptorFromString(privateFileSDDL)
	if err != nil {
		return nil, fmt.Errorf("make file %s: %w", file, err)
	}
	attributes := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	name, err := windows.UTF16PtrFromString(file)
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
	if err := CheckOwners(file); err != nil {
		return err
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
