package winhost

import (
	"context"
	"errors"
	"io/fs"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

var errUnsupported = errors.ErrUnsupported

// win32Codes are those system error codes that callers branch on, of files, the network, and services. The text is
// empty where Windows says it itself.
// https://learn.microsoft.com/windows/win32/debug/system-error-codes
var win32Codes = codes{
	1:    {"", errUnsupported},
	2:    {"", fs.ErrNotExist},
	3:    {"", fs.ErrNotExist},
	5:    {"", fs.ErrPermission},
	32:   {"", handler.ErrPrecondition}, // sharing violation
	50:   {"", errUnsupported},
	53:   {"the network path was not found", fs.ErrNotExist},
	65:   {"network access is denied: a server that cannot encrypt needs -require-privacy=false", fs.ErrPermission},
	67:   {"the network name cannot be found", fs.ErrNotExist},
	80:   {"", fs.ErrExist},
	85:   {"the local device name is already in use", handler.ErrPrecondition},
	86:   {"the network password is not correct", fs.ErrPermission},
	87:   {"the parameter is incorrect", fs.ErrInvalid},
	121:  {"the semaphore timeout period has expired", context.DeadlineExceeded},
	123:  {"", fs.ErrInvalid}, // invalid name
	145:  {"", fs.ErrExist},   // directory not empty, as package os has it
	161:  {"", fs.ErrInvalid}, // bad path name
	183:  {"", fs.ErrExist},
	1051: {"", handler.ErrPrecondition}, // dependent services running
	1052: {"", handler.ErrPrecondition}, // control not valid for the service
	1053: {"", context.DeadlineExceeded},
	1055: {"", handler.ErrPrecondition}, // service database locked
	1056: {"", fs.ErrExist},             // already running
	1058: {"", handler.ErrPrecondition}, // disabled
	1059: {"", handler.ErrPrecondition}, // circular dependency
	1060: {"", fs.ErrNotExist},
	1061: {"", handler.ErrPrecondition}, // cannot accept controls now
	1062: {"", handler.ErrPrecondition}, // not started
	1068: {"", handler.ErrPrecondition}, // dependency failed
	1069: {"", fs.ErrPermission},        // logon failure of the service
	1072: {"", handler.ErrPrecondition}, // marked for deletion
	1115: {"", handler.ErrPrecondition}, // shutdown in progress
	1219: {"the node has a connection to this server with other credentials, and Windows keeps one set for a server. Use one user for all " +
		"shares of the server, or remove its other mappings when no volume uses them (Get-SmbGlobalMapping, Get-SmbConnection)", handler.ErrPrecondition},
	1223: {"the operation was canceled", context.Canceled},
	1231: {"the network location cannot be reached", handler.ErrPrecondition},
	1326: {"the user name or password is incorrect", fs.ErrPermission},
	1327: {"account restrictions prevent this logon", fs.ErrPermission},
	1330: {"the password of this account has expired", fs.ErrPermission},
	1331: {"the account is disabled", fs.ErrPermission},
	1460: {"timeout", context.DeadlineExceeded},
	1909: {"the account is locked out", fs.ErrPermission},
	2138: {"the node's SMB client does not run or has no network. Start the service LanmanWorkstation, and enable " +
		"\"Client for Microsoft Networks\" on the network adapter", handler.ErrPrecondition},
	2250: {"the network connection does not exist", fs.ErrNotExist},
	2401: {"files on the connection are open", handler.ErrPrecondition},
	2402: {"the connection is in use", handler.ErrPrecondition},
	2404: {"the connection is in use by a process", handler.ErrPrecondition},
	4390: {"", handler.ErrPrecondition}, // not a reparse point
}

// iscsiCodes are the status codes of the initiator.
// https://learn.microsoft.com/windows-hardware/drivers/storage/iscsi-status-qualifiers
var iscsiCodes = codes{
	0xEFFF0002: {"login failed", nil},
	0xEFFF0003: {"connection failed", handler.ErrPrecondition},
	0xEFFF0009: {"authentication failure", fs.ErrPermission},
	0xEFFF000A: {"authorization failure", fs.ErrPermission},
	0xEFFF000B: {"not found", fs.ErrNotExist},
	0xEFFF000C: {"the target was removed", fs.ErrNotExist},
	0xEFFF003E: {"the iSCSI initiator service is not running", handler.ErrPrecondition},
	0xEFFF003F: {"the target is already logged in", fs.ErrExist},
	0xEFFF0040: {"a device of the session is in use", handler.ErrPrecondition},
	0xEFFF0043: {"portal not found", fs.ErrNotExist},
	0xEFFF0044: {"initiator not found", fs.ErrNotExist},
}

// in says what a number means: in this table, or else in the system's.
func (c codes) in(code uint32) meaning {
	if m, known := c[code]; known {
		return m
	}
	return win32Codes[code]
}
