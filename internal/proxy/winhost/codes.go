package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// codeError is an answer of Windows that is not success: the number of a method or of a function, with what it
// means. It wraps the sentinel that callers branch on, if there is one.
type codeError struct {
	operation string // "WMI MSFT_Disk.Initialize", "SetVolumeMountPointW"
	object    string // "disk 3"
	code      uint32
	meaning
}

// meaning is what a number stands for.
type meaning struct {
	text string
	kind error // what callers branch on; nil if the number says no more than that it failed
}

// Error has the words of the old servers in front.
func (e *codeError) Error() string {
	text := fmt.Sprintf("%s failed (target=%s): code=%d", e.operation, e.object, e.code)
	if e.text != "" {
		text += ": " + e.text
	}
	return text
}

func (e *codeError) Unwrap() error { return e.kind }

// isCode says whether an error is an answer of Windows with one of these numbers.
func isCode(err error, numbers ...uint32) bool {
	answer, ok := errors.AsType[*codeError](err)
	return ok && slices.Contains(numbers, answer.code)
}

// codes says what the numbers of one provider mean.
type codes map[uint32]meaning

// Numbers with a meaning of their own to operations.
const (
	diskInitialized  = 41001
	accessPathInUse  = 42002
	targetLoggedIn   = 0xEFFF003F
	errorDirNotEmpty = 145
)

// storageCodes are the numbers of the classes of disks, partitions and volumes.
// https://learn.microsoft.com/windows-hardware/drivers/storage/storage-management-api-common-return-codes
var storageCodes = codes{
	1:     {"not supported", errUnsupported},
	2:     {"unspecified error", nil},
	3:     {"timeout", context.DeadlineExceeded},
	4:     {"failed", nil},
	5:     {"invalid parameter", fs.ErrInvalid},
	6:     {"in use", handler.ErrPrecondition},
	7:     {"not supported on this platform", errUnsupported},
	8:     {"object not found", fs.ErrNotExist},
	4096:  {"a job was started, and its end is not known", nil},
	4097:  {"size not supported", handler.ErrPrecondition},
	4098:  {"timeout not supported", errUnsupported},
	4099:  {"the device is busy", handler.ErrPrecondition},
	40000: {"not enough available capacity", handler.ErrPrecondition},
	40001: {"access denied", fs.ErrPermission},
	40002: {"not enough resources", nil},
	40003: {"the cache is out of date", nil},
	40004: {"unexpected I/O error", nil},
	40005: {"a size must be given in one way", fs.ErrInvalid},
	40006: {"the object is not in the cache", fs.ErrNotExist},
	40007: {"fatal device hardware error", nil},
	40018: {"the object is managed by failover clustering", handler.ErrPrecondition},
	41000: {"the disk has not been initialized", handler.ErrPrecondition},
	41001: {"the disk has already been initialized", fs.ErrExist},
	41002: {"the disk is read only", handler.ErrPrecondition},
	41003: {"the disk is offline", handler.ErrPrecondition},
	41004: {"the disk's partition limit has been reached", handler.ErrPrecondition},
	41005: {"the partition alignment is not valid", fs.ErrInvalid},
	41006: {"a parameter is not valid for this type of partition", fs.ErrInvalid},
	41009: {"not supported on a critical disk", fs.ErrPermission},
	41010: {"the partition type is not valid", fs.ErrInvalid},
	41011: {"only the first 2 TB are usable on MBR disks", handler.ErrPrecondition},
	41012: {"the offset is not valid", fs.ErrInvalid},
	41014: {"the disk is too small for GPT", handler.ErrPrecondition},
	42002: {"the access path is already in use", fs.ErrExist},
	42004: {"hidden partitions have no access paths", handler.ErrPrecondition},
	42007: {"the access path is not valid", fs.ErrInvalid},
	42008: {"the volume has errors", handler.ErrPrecondition},
	42009: {"the partition holds an unknown file system", handler.ErrPrecondition},
	42010: {"not allowed on a system or critical partition", fs.ErrPermission},
	42011: {"only supported on data partitions", handler.ErrPrecondition},
	43000: {"the cluster size is invalid", fs.ErrInvalid},
	43001: {"the file system is not supported", errUnsupported},
	43002: {"the volume cannot be quick formatted", handler.ErrPrecondition},
	43003: {"the number of clusters exceeds 32 bits", handler.ErrPrecondition},
	43005: {"the cluster size does not fit the sector size", fs.ErrInvalid},
	43006: {"the drive is read only", handler.ErrPrecondition},
	43013: {"the drive cannot be opened for direct access", handler.ErrPrecondition},
	43014: {"the file system of the drive cannot be determined", handler.ErrPrecondition},
	43015: {"fixed by group policy", fs.ErrPermission},
	43016: {"fixed by the registry", fs.ErrPermission},
}
