package winhost

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

func TestWhatIsKeptInTheRegistryEndsWithWindowsAndIsForAdministrators(t *testing.T) {
	h := hive{memoryParent + `\test of SMB mappings`}
	t.Cleanup(func() { _ = registry.DeleteKey(registry.LOCAL_MACHINE, h.path) })
	if state, err := h.Load(); state != nil || err != nil {
		t.Fatalf("before anything is kept: %q, %v", state, err)
	}
	for _, state := range []string{"first", "second"} {
		if err := h.Store([]byte(state)); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Load(); string(got) != state || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	// Windows takes no key that is kept below one that is not.
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, h.path, registry.CREATE_SUB_KEY|registry.READ)
	if err != nil {
		t.Fatal(err)
	}
	const childMustBeVolatile = windows.Errno(1021) // ERROR_CHILD_MUST_BE_VOLATILE
	if _, _, err := registry.CreateKey(key, "kept", registry.READ); !errors.Is(err, childMustBeVolatile) {
		t.Errorf("a key below it: %v", err)
	}
	descriptor, err := windows.GetSecurityInfo(windows.Handle(key), windows.SE_REGISTRY_KEY, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	// An inherited entry would be one more. Wine does not show that inheritance is off.
	_, want, _ := strings.Cut(memoryAccess, "(")
	if _, entries, _ := strings.Cut(descriptor.String(), "("); entries != want {
		t.Errorf("its access list is %s", descriptor)
	}
	if err := key.Close(); err != nil {
		t.Error(err)
	}
}
