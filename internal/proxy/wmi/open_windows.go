package wmi

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/go-ole/go-ole"
)

// Open prepares the process for COM, once, and returns a pool, which connects when it is first asked.
func Open(o Options) (*Pool, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := prepareCOM(); err != nil {
		return nil, err
	}
	return newPool(o, func() (session, error) { return newSession(o.MaxResults) })
}

// prepareCOM keeps COM's multithreaded apartment for the life of the process: to end it and make another with each call is slow, and
// some implementations do not survive it. It also sets what COM does by default: encrypt, and let WMI act with the caller's rights.
// Settings that were made before are kept.
var prepareCOM = sync.OnceValue(func() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	// https://learn.microsoft.com/windows/win32/api/combaseapi/nf-combaseapi-coincrementmtausage
	var cookie uintptr
	if hr, _, _ := coIncrementMTAUsage.Call(uintptr(unsafe.Pointer(&cookie))); isFault(uint32(hr)) {
		return named("prepare", "COM", failed("CoIncrementMTAUsage", uint32(hr)))
	}

	// https://learn.microsoft.com/windows/win32/wmisdk/setting-the-default-process-security-level-using-c-
	const anyService, packetPrivacy, impersonate, noCapabilities, tooLate = -1, 6, 3, 0, 0x80010119
	if err := ole.CoInitializeSecurity(anyService, packetPrivacy, impersonate, noCapabilities); err != nil && codeOf(err) != tooLate {
		return named("prepare", "COM", failed("CoInitializeSecurity", codeOf(err)))
	}
	return nil
})
