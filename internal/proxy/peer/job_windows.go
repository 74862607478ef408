package peer

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	isProcessInJob  = windows.NewLazySystemDLL("kernel32.dll").NewProc("IsProcessInJob")
	ntOpenJobObject = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtOpenJobObject")
	ntQueryObject   = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtQueryObject")
)

// Jobs are named by the host compute service for containers with isolation by process, and by the shim for HostProcess
// containers; the latter name is relative to the session of services, which is spelled out here.
// https://github.com/microsoft/hcsshim, internal/hcs and internal/jobcontainers
func (windowsKernel) Jobs(container string) []job {
	return []job{
		{name: `\Container_` + container},
		{name: `\BaseNamedObjects\JobContainer_` + container, isHostProcess: true},
	}
}

// InJob includes jobs that are nested in the one of that name.
// https://learn.microsoft.com/windows/win32/api/jobapi/nf-jobapi-isprocessinjob
func (p windowsProcess) InJob(name string) (in bool, err error) {
	job, err := openJob(name)
	switch {
	case errors.Is(err, windows.ERROR_FILE_NOT_FOUND), errors.Is(err, windows.STATUS_OBJECT_TYPE_MISMATCH):
		return false, nil // there is none, or something that holds no processes
	case err != nil:
		return false, fmt.Errorf("open it: %w", err)
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(job)) }()
	if own, err := nameOf(job); err != nil {
		return false, fmt.Errorf("ask for its name: %w", err)
	} else if own != name {
		return false, fmt.Errorf("the name leads to another job, %s", own)
	}
	var result int32
	if ok, _, err := isProcessInJob.Call(uintptr(p), uintptr(job), uintptr(unsafe.Pointer(&result))); ok == 0 {
		return false, err
	}
	if result == 0 {
		return false, nil
	}
	return true, checkOwner(job)
}

// openJob opens a job by its full name. OpenJobObject would look in the session of this process alone. Symbolic links are not
// followed: services may make them where the jobs of HostProcess containers are, and lead the name of one container to the job of
// another. Systems that do not know the flag follow them, so that the job's own name is compared besides.
// https://learn.microsoft.com/windows/win32/procthread/job-object-security-and-access-rights
func openJob(name string) (windows.Handle, error) {
	object, err := windows.NewNTUnicodeString(name)
	if err != nil {
		return 0, err
	}
	attributes := windows.OBJECT_ATTRIBUTES{ObjectName: object, Attributes: windows.OBJ_DONT_REPARSE}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	const query = 0x4 // JOB_OBJECT_QUERY
	var job windows.Handle
	status, _, _ := ntOpenJobObject.Call(uintptr(unsafe.Pointer(&job)), query|windows.READ_CONTROL, uintptr(unsafe.Pointer(&attributes)))
	switch status := windows.NTStatus(status); status { // #nosec G115 -- a status has 32 bits
	case windows.STATUS_SUCCESS:
		return job, nil
	case windows.STATUS_OBJECT_TYPE_MISMATCH: // its error number says nothing but "invalid handle"
		return 0, status
	default:
		return 0, status.Errno()
	}
}

// nameOf is the full name of a kernel object, where it is and not by which way it was found; empty if it has none.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/nf-ntifs-zwqueryobject
func nameOf(object windows.Handle) (string, error) {
	const objectNameInformation = 1
	var info struct {
		name windows.NTUnicodeString // points into text
		text [1024]uint16            // several times the longest name that is asked for
	}
	status, _, _ := ntQueryObject.Call(uintptr(object), objectNameInformation, uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info), 0)
	if status := windows.NTStatus(status); status != windows.STATUS_SUCCESS { // #nosec G115 -- a status has 32 bits
		return "", status.Errno()
	}
	return info.name.String(), nil
}

// checkOwner refuses a job that another account made: every service may make named objects where the jobs of HostProcess
// containers are, and a container's name is free once the container has ended.
func checkOwner(job windows.Handle) error {
	descriptor, err := windows.GetSecurityInfo(job, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("ask who made it: %w", err)
	}
	return judgeOwner(descriptor)
}

func judgeOwner(descriptor *windows.SECURITY_DESCRIPTOR) error {
	owner, _, err := descriptor.Owner()
	if err != nil {
		return fmt.Errorf("ask who made it: %w", err)
	}
	if owner == nil {
		return errors.New("it has no owner")
	}
	if owner.IsWellKnown(windows.WinLocalSystemSid) || owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
		return nil
	}
	self, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("ask for our own account: %w", err)
	}
	if !owner.Equals(self.User.Sid) {
		return fmt.Errorf("%s made it, and not the system", owner)
	}
	return nil
}
