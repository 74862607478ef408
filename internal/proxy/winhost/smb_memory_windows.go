package winhost

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// memoryKey holds what is remembered of mappings. It is volatile: Windows keeps it in memory, never writes it to the disk, and
// drops it when it stops, as it does with the credentials of the mappings themselves.
// https://learn.microsoft.com/windows/win32/api/winreg/nf-winreg-regcreatekeyexw
const (
	memoryParent = `SOFTWARE\Pipeguard`
	memoryKey    = memoryParent + `\SMB mappings`
	memoryValue  = "state"

	optionVolatile = 0x1 // REG_OPTION_VOLATILE

	// memoryAccess is full control for SYSTEM and administrators, and no access for other accounts or by inheritance.
	memoryAccess = "D:P(A;;KA;;;SY)(A;;KA;;;BA)"
)

var regCreateKeyEx = windows.NewLazySystemDLL("advapi32.dll").NewProc("RegCreateKeyExW")

// hive is a memory in a volatile key of the registry.
type hive struct{ path string }

// Load implements [memory].
func (h hive) Load() ([]byte, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, h.path, registry.QUERY_VALUE)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open registry key %s: %w", h.path, err)
	}
	state, _, err := key.GetBinaryValue(memoryValue)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return state, errors.Join(err, key.Close())
}

// Store implements [memory]. Nothing is written before the key is closed to all other accounts.
func (h hive) Store(state []byte) error {
	parent, _, err := registry.CreateKey(registry.LOCAL_MACHINE, memoryParent, registry.CREATE_SUB_KEY)
	if err != nil {
		return fmt.Errorf("open registry key %s: %w", memoryParent, err)
	}
	key, err := createVolatile(h.path)
	if err := errors.Join(err, parent.Close()); err != nil {
		return fmt.Errorf("create registry key %s: %w", h.path, err)
	}
	err = protect(windows.Handle(key))
	if err == nil {
		err = key.SetBinaryValue(memoryValue, state)
	}
	if err = errors.Join(err, key.Close()); err != nil {
		return fmt.Errorf("write registry key %s: %w", h.path, err)
	}
	return nil
}

// createVolatile opens a key, or makes it as one that is not kept.
func createVolatile(path string) (registry.Key, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var key registry.Key
	const access = registry.SET_VALUE | registry.QUERY_VALUE | windows.READ_CONTROL | windows.WRITE_DAC
	code, _, _ := regCreateKeyEx.Call(uintptr(registry.LOCAL_MACHINE), uintptr(unsafe.Pointer(name)), 0, 0, optionVolatile, access, 0,
		uintptr(unsafe.Pointer(&key)), 0) // #nosec G103 -- the arguments of the function
	if code != 0 {
		return 0, windows.Errno(code)
	}
	return key, nil
}

func protect(key windows.Handle) error {
	descriptor, err := windows.SecurityDescriptorFromString(memoryAccess)
	if err != nil {
		return err
	}
	list, _, err := descriptor.DACL()
	if err != nil {
		return err
	}
	return windows.SetSecurityInfo(key, windows.SE_REGISTRY_KEY, windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, list, nil)
}
