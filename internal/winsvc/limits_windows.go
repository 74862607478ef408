package winsvc

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc/mgr"
)

var sidTypes = map[uint32]SIDType{
	windows.SERVICE_SID_TYPE_NONE: NoSID, windows.SERVICE_SID_TYPE_UNRESTRICTED: UnrestrictedSID, windows.SERVICE_SID_TYPE_RESTRICTED: RestrictedSID,
}

// serviceSIDInfo is SERVICE_SID_INFO.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_sid_info
type serviceSIDInfo struct{ sidType uint32 }

// requiredPrivileges is SERVICE_REQUIRED_PRIVILEGES_INFOW: texts that each end with a NUL, and another NUL.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_required_privileges_infow
type requiredPrivileges struct{ names *uint16 }

// isUnknownLevel reports whether a service manager has no such setting, as Wine's has not.
func isUnknownLevel(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_LEVEL) || errors.Is(err, windows.ERROR_CALL_NOT_IMPLEMENTED) ||
		errors.Is(err, windows.ERROR_NOT_SUPPORTED)
}

// limit sets the limits of a service and reads them back, so that a list that was not taken as it was meant is an error.
func limit(s *mgr.Service, want *Limits) (changed bool, notes []string, err error) {
	if want == nil {
		return false, nil, nil
	}
	now, err := queryLimits(s)
	switch {
	case isUnknownLevel(err):
		return false, []string{"this service manager knows neither service SIDs nor lists of privileges: the process keeps all of its account's"}, nil
	case err != nil:
		return false, nil, err
	case now.Equal(*want):
		return false, nil, nil
	}
	if err := setLimits(s, *want); err != nil {
		return false, nil, err
	}
	if now, err = queryLimits(s); err != nil {
		return false, nil, err
	}
	if !now.Equal(*want) {
		return false, nil, fmt.Errorf("it has the SID type %s and the privileges %q after it was given %s and %q; a service that is removed and made anew has neither",
			now.SID, now.Privileges, want.SID, want.Privileges)
	}
	return true, nil, nil
}

// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfig2w
func setLimits(s *mgr.Service, want Limits) error {
	var sid serviceSIDInfo
	for number, name := range sidTypes {
		if name == want.SID {
			sid.sidType = number
		}
	}
	if err := windows.ChangeServiceConfig2(s.Handle, windows.SERVICE_CONFIG_SERVICE_SID_INFO, (*byte)(unsafe.Pointer(&sid))); err != nil {
		return fmt.Errorf("set the type of its SID: %w", err)
	}
	names, err := multiString(want.Privileges)
	if err != nil {
		return err
	}
	p := requiredPrivileges{&names[0]}
	if err := windows.ChangeServiceConfig2(s.Handle, windows.SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, (*byte)(unsafe.Pointer(&p))); err != nil {
		return fmt.Errorf("set the privileges that it keeps: %w", err)
	}
	return nil
}

func queryLimits(s *mgr.Service) (Limits, error) {
	buffer, err := queryConfig2(s, windows.SERVICE_CONFIG_SERVICE_SID_INFO)
	if err != nil {
		return Limits{}, fmt.Errorf("query the type of its SID: %w", err)
	}
	number := (*serviceSIDInfo)(unsafe.Pointer(&buffer[0])).sidType
	limits := Limits{SID: sidTypes[number]}
	if limits.SID == "" {
		return Limits{}, fmt.Errorf("query the type of its SID: it is %d, which is not known here", number)
	}
	if buffer, err = queryConfig2(s, windows.SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO); err != nil {
		return Limits{}, fmt.Errorf("query the privileges that it keeps: %w", err)
	}
	limits.Privileges = splitMultiString((*requiredPrivileges)(unsafe.Pointer(&buffer[0])).names)
	return limits, nil
}

// queryConfig2 returns memory with pointers at its beginning, which point into it.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfig2w
func queryConfig2(s *mgr.Service, level uint32) ([]uint64, error) {
	return grown(func(buffer unsafe.Pointer, size uint32, needed *uint32) error {
		return windows.QueryServiceConfig2(s.Handle, level, (*byte)(buffer), size, needed)
	})
}

// grown calls a function of Windows with more memory until that is enough. The memory is aligned for pointers at its beginning.
func grown(fill func(buffer unsafe.Pointer, size uint32, needed *uint32) error) ([]uint64, error) {
	size := uint32(1024)
	for {
		buffer := make([]uint64, (size+7)/8)
		had := uint32(len(buffer) * 8) // #nosec G115 -- some kilobytes
		err := fill(unsafe.Pointer(&buffer[0]), had, &size)
		if errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) && size > had {
			continue
		}
		return buffer, err
	}
}

func multiString(texts []string) ([]uint16, error) {
	var all []uint16
	for _, text := range texts {
		one, err := windows.UTF16FromString(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		all = append(all, one...)
	}
	if len(all) == 0 {
		all = []uint16{0} // an empty list has two NULs too
	}
	return append(all, 0), nil
}

func splitMultiString(next *uint16) (texts []string) {
	for next != nil && *next != 0 {
		text := windows.UTF16PtrToString(next)
		texts = append(texts, text)
		for *next != 0 {
			next = (*uint16)(unsafe.Add(unsafe.Pointer(next), 2))
		}
		next = (*uint16)(unsafe.Add(unsafe.Pointer(next), 2))
	}
	return texts
}
