package wmi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Error is what WMI or COM answered instead of a result.
type Error struct {
	Op     string // what was done: query, follow, call, connect
	What   string // to what: a class, a method, a namespace
	Code   uint32 // HRESULT
	At     string // the part that failed, if it is known: a COM member, a parameter
	System string // what Windows says of the code alone, if it is one of its own
	Text   string // what the provider says about it, if it says anything
}

// Error returns everything except the provider's text, which may repeat a parameter. The caller adds it where that is safe.
func (e *Error) Error() string {
	text := fmt.Sprintf("0x%08X", e.Code)
	if e.Op != "" {
		text = e.Op + " " + e.What + ": " + text
	}
	if name := hresults[e.Code].name; name != "" {
		text += " (" + name + ")"
	}
	if e.At != "" {
		text += " from " + e.At
	}
	if e.System != "" {
		text += ": " + e.System
	}
	return text
}

// Is maps the code to the errors that callers branch on.
func (e *Error) Is(target error) bool {
	means := hresults[e.Code].means
	return means != nil && means == target
}

// isLost reports whether an error says that a connection is gone, so that another one may do better.
func isLost(err error) bool {
	answer, ok := errors.AsType[*Error](err)
	return ok && hresults[answer.Code].lost
}

// named says what was done to what when an error was met.
func named(op, what string, err error) error {
	if err == nil {
		return nil
	}
	if answer, ok := err.(*Error); ok { //nolint:errorlint // one that is wrapped has its operation already
		if answer.Op == "" {
			answer.Op, answer.What = op, what
		}
		return answer
	}
	return fmt.Errorf("%s %s: %w", op, what, err)
}

// hresults are the codes that a reader of instances or a caller of methods meets.
// https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants
// https://learn.microsoft.com/windows/win32/com/com-error-codes-1
var hresults = map[uint32]struct {
	name  string
	means error
	lost  bool // the connection is gone
}{
	0x80041001: {name: "WBEM_E_FAILED"},
	0x80041002: {name: "WBEM_E_NOT_FOUND", means: fs.ErrNotExist},
	0x80041003: {name: "WBEM_E_ACCESS_DENIED", means: fs.ErrPermission},
	0x80041004: {name: "WBEM_E_PROVIDER_FAILURE"},
	0x80041005: {name: "WBEM_E_TYPE_MISMATCH"},
	0x80041006: {name: "WBEM_E_OUT_OF_MEMORY"},
	0x80041007: {name: "WBEM_E_INVALID_CONTEXT"},
	0x80041008: {name: "WBEM_E_INVALID_PARAMETER"},
	0x80041009: {name: "WBEM_E_NOT_AVAILABLE"},
	0x8004100A: {name: "WBEM_E_CRITICAL_ERROR"},
	0x8004100C: {name: "WBEM_E_NOT_SUPPORTED", means: errors.ErrUnsupported},
	0x8004100E: {name: "WBEM_E_INVALID_NAMESPACE", means: errors.ErrUnsupported},
	0x8004100F: {name: "WBEM_E_INVALID_OBJECT"},
	0x80041010: {name: "WBEM_E_INVALID_CLASS", means: errors.ErrUnsupported},
	0x80041011: {name: "WBEM_E_PROVIDER_NOT_FOUND"},
	0x80041012: {name: "WBEM_E_INVALID_PROVIDER_REGISTRATION"},
	0x80041013: {name: "WBEM_E_PROVIDER_LOAD_FAILURE"},
	0x80041014: {name: "WBEM_E_INITIALIZATION_FAILURE"},
	0x80041015: {name: "WBEM_E_TRANSPORT_FAILURE", lost: true},
	0x80041016: {name: "WBEM_E_INVALID_OPERATION"},
	0x80041017: {name: "WBEM_E_INVALID_QUERY"},
	0x80041018: {name: "WBEM_E_INVALID_QUERY_TYPE"},
	0x80041019: {name: "WBEM_E_ALREADY_EXISTS", means: fs.ErrExist},
	0x8004101D: {name: "WBEM_E_UNEXPECTED"},
	0x80041021: {name: "WBEM_E_INVALID_SYNTAX"},
	0x80041024: {name: "WBEM_E_PROVIDER_NOT_CAPABLE", means: errors.ErrUnsupported},
	0x80041027: {name: "WBEM_E_QUERY_NOT_IMPLEMENTED", means: errors.ErrUnsupported},
	0x8004102B: {name: "WBEM_E_VALUE_OUT_OF_RANGE"},
	0x8004102E: {name: "WBEM_E_INVALID_METHOD", means: errors.ErrUnsupported},
	0x8004102F: {name: "WBEM_E_INVALID_METHOD_PARAMETERS"},
	0x80041031: {name: "WBEM_E_INVALID_PROPERTY"},
	0x80041032: {name: "WBEM_E_CALL_CANCELLED"},
	0x80041033: {name: "WBEM_E_SHUTTING_DOWN", lost: true},
	0x8004103A: {name: "WBEM_E_INVALID_OBJECT_PATH"},
	0x80041045: {name: "WBEM_E_SERVER_TOO_BUSY"},
	0x80041055: {name: "WBEM_E_METHOD_NOT_IMPLEMENTED", means: errors.ErrUnsupported},
	0x80041069: {name: "WBEM_E_TIMED_OUT", means: context.DeadlineExceeded},
	0x8004106C: {name: "WBEM_E_QUOTA_VIOLATION"},

	0x80004001: {name: "E_NOTIMPL", means: errors.ErrUnsupported},
	0x80070005: {name: "E_ACCESSDENIED", means: fs.ErrPermission},
	0x80010007: {name: "RPC_E_SERVER_DIED", lost: true},
	0x80010012: {name: "RPC_E_SERVER_DIED_DNE", lost: true},
	0x80010105: {name: "RPC_E_SERVERFAULT"},
	0x80010108: {name: "RPC_E_DISCONNECTED", lost: true},
	0x800401FD: {name: "CO_E_OBJNOTCONNECTED", lost: true},
	0x80040154: {name: "REGDB_E_CLASSNOTREG"},
	0x800706BA: {name: "RPC_S_SERVER_UNAVAILABLE", lost: true},
	0x800706BE: {name: "RPC_S_CALL_FAILED", lost: true},
	0x800706BF: {name: "RPC_S_CALL_FAILED_DNE", lost: true},
	0x80020009: {name: "DISP_E_EXCEPTION"},
}
