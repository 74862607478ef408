package winsvc

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	setMitigation       = windows.NewLazySystemDLL("kernel32.dll").NewProc("SetProcessMitigationPolicy")
	getMitigation       = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessMitigationPolicy")
	lookupPrivilegeName = windows.NewLazySystemDLL("advapi32.dll").NewProc("LookupPrivilegeNameW")
)

// Harden has Windows keep this process from starting others and from following links of accounts without administrator's rights, as far
// as this Windows can, and returns what holds from then on. It cannot be undone.
func Harden() []Protection {
	return harden(setProcessMitigation, func(policy uint32) (uint32, error) {
		return processMitigation(windows.CurrentProcess(), policy)
	})
}

// ProcessPower asks a process for its privileges and protections.
func ProcessPower(pid uint32) (Power, error) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_INFORMATION, false, pid)
	if err != nil {
		return Power{}, fmt.Errorf("open process %d: %w", pid, err)
	}
	defer windows.CloseHandle(process) //nolint:errcheck // a handle that was only read through
	power := Power{Protections: protections(func(policy uint32) (uint32, error) { return processMitigation(process, policy) })}
	if power.Privileges, err = privilegesOf(process); err != nil {
		return Power{}, fmt.Errorf("privileges of process %d: %w", pid, err)
	}
	return power, nil
}

// https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-setprocessmitigationpolicy
func setProcessMitigation(policy, flags uint32) error {
	if err := setMitigation.Find(); err != nil {
		return err
	}
	if ok, _, err := setMitigation.Call(uintptr(policy), uintptr(unsafe.Pointer(&flags)), unsafe.Sizeof(flags)); ok == 0 {
		return err
	}
	return nil
}

// https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getprocessmitigationpolicy
func processMitigation(process windows.Handle, policy uint32) (flags uint32, err error) {
	if err := getMitigation.Find(); err != nil {
		return 0, err
	}
	if ok, _, err := getMitigation.Call(uintptr(process), uintptr(policy), uintptr(unsafe.Pointer(&flags)), unsafe.Sizeof(flags)); ok == 0 {
		return 0, err
	}
	return flags, nil
}

// privilegesOf reads the token of a process.
// https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-token_privileges
func privilegesOf(process windows.Handle) ([]string, error) {
	var token windows.Token
	if err := windows.OpenProcessToken(process, windows.TOKEN_QUERY, &token); err != nil {
		return nil, fmt.Errorf("open its token: %w", err)
	}
	defer token.Close() //nolint:errcheck // a handle that was only read through
	buffer, err := grown(func(buffer unsafe.Pointer, size uint32, needed *uint32) error {
		return windows.GetTokenInformation(token, windows.TokenPrivileges, (*byte)(buffer), size, needed)
	})
	if err != nil {
		return nil, err
	}
	return privilegeNames((*windows.Tokenprivileges)(unsafe.Pointer(&buffer[0])))
}

func privilegeNames(held *windows.Tokenprivileges) ([]string, error) {
	names := make([]string, 0, held.PrivilegeCount)
	for _, one := range held.AllPrivileges() {
		if one.Attributes&windows.SE_PRIVILEGE_REMOVED != 0 {
			continue
		}
		name, err := privilegeName(one.Luid)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-lookupprivilegenamew
func privilegeName(luid windows.LUID) (string, error) {
	var name [128]uint16 // the longest that there is has 41 characters
	size := uint32(len(name))
	ok, _, err := lookupPrivilegeName.Call(0, uintptr(unsafe.Pointer(&luid)), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&size)))
	if ok == 0 {
		return "", fmt.Errorf("name of privilege %d: %w", luid.LowPart, err)
	}
	return windows.UTF16ToString(name[:]), nil
}
