package filetrust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Rights by which a file or directory is changed, or its access is.
// https://learn.microsoft.com/windows/win32/fileio/file-access-rights-constants
const (
	takeOver = windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_ALL
	// On a file to write and to append; on a directory to make files and directories.
	write = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.GENERIC_WRITE
	// deleteChild on a directory removes whatever is in it.
	deleteChild = 0x40
)

// trustedInstaller owns what came with Windows.
const trustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"

// checkWay refuses links, and directories above path that do not stand up to the demand. Links are no way to a file that decides:
// junctions are made without any right but that of making a directory.
func checkWay(path string, d demand) (fs.FileInfo, error) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is a link, or no directory", dir)
		}
		if filepath.Dir(dir) == dir { // a volume's root cannot be replaced, and what is in it is checked itself
			break
		}
		err = Owner(dir)
		if d != owned {
			err = check(dir, d.denied(dir == filepath.Dir(path)))
		}
		if err != nil {
			return nil, err
		}
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is a link, or no file", path)
	}
	return info, Owner(path)
}

// denied are the rights that others must not have on a directory of the way, or on its last one.
func (d demand) denied(last bool) windows.ACCESS_MASK {
	if d == alone && last {
		return takeOver | deleteChild | write // it is made for this program's files, or should be
	}
	return takeOver | deleteChild
}

func checkContents(dir string) error { return check(dir, takeOver|write|deleteChild) }

func checkFile(path string) error { return check(path, takeOver|write) }

func (tree) checkLink(path string) error { return fmt.Errorf("%s is a link", path) }

// check refuses a path that belongs to others, or whose access list gives them one of the rights.
func check(path string, rights windows.ACCESS_MASK) error {
	if err := Owner(path); err != nil {
		return err
	}
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("access list of %s: %w", path, err)
	}
	return judge(path, descriptor, rights)
}

// judge reads an access list. An entry of a kind that it does not know counts as one that grants every right to every account.
func judge(path string, descriptor *windows.SECURITY_DESCRIPTOR, rights windows.ACCESS_MASK) error {
	list, _, err := descriptor.DACL()
	if err != nil || list == nil { // the error of a descriptor without a list
		return &Fault{path, "it has no access list, so that every account can change it", remedy(path)}
	}
	for i := range uint32(list.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &entry); err != nil {
			return fmt.Errorf("access list of %s: %w", path, err)
		}
		const denied, deniedObject, deniedCallback, deniedCallbackObject = 1, 6, 10, 12
		switch entry.Header.AceType {
		case denied, deniedObject, deniedCallback, deniedCallbackObject:
			continue // it takes rights away; what is given otherwise is judged without it
		case windows.ACCESS_ALLOWED_ACE_TYPE:
		default:
			return &Fault{path, fmt.Sprintf("its access list has an entry of the kind %d, which is not read here", entry.Header.AceType), remedy(path)}
		}
		if entry.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 || entry.Mask&rights == 0 {
			continue
		}
		sid := (*windows.SID)(unsafe.Pointer(&entry.SidStart))
		trusted, err := isTrusted(sid)
		if err != nil {
			return err
		}
		if !trusted {
			return &Fault{path, fmt.Sprintf("its access list lets %s change it (rights %#x)", sid, uint32(entry.Mask&rights)), remedy(path)}
		}
	}
	return nil
}

func remedy(path string) string {
	return fmt.Sprintf(`icacls "%s" /inheritance:r /grant:r *S-1-5-18:F *S-1-5-32-544:F`, path)
}

// Owner refuses a path that belongs to others than SYSTEM, administrators, the installer of Windows and this account.
func Owner(path string) error {
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("owner of %s: %w", path, err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return fmt.Errorf("owner of %s: %w", path, err)
	}
	if owner == nil {
		return errors.New("owner of " + path + ": there is none")
	}
	trusted, err := isTrusted(owner)
	if err != nil || trusted {
		return err
	}
	return &Fault{path, fmt.Sprintf("it belongs to %s and not to SYSTEM or administrators", owner), "look at what is in it, and remove it"}
}

// isTrusted says whether an account may decide anyway. The owner's rights are the owner's, who is judged himself.
func isTrusted(sid *windows.SID) (bool, error) {
	if sid.IsWellKnown(windows.WinLocalSystemSid) || sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) ||
		sid.IsWellKnown(windows.WinCreatorOwnerRightsSid) || sid.String() == trustedInstaller {
		return true, nil
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return false, fmt.Errorf("this process's account: %w", err)
	}
	return sid.Equals(user.User.Sid), nil
}
