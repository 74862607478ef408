package wmi

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unsafe"

	"github.com/go-ole/go-ole"
)

// field is a value with its type, to be cleared.
type field struct {
	value ole.VARIANT
	kind  cimType
}

func (f *field) clear() { _ = f.value.Clear() }

// get reads a property. The caller clears it.
// https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemclassobject-get
func (o object) get(name string) (*field, error) {
	text, err := wide(name)
	if err != nil {
		return nil, err
	}
	f := new(field)
	hr := o.call(objectGet, uintptr(unsafe.Pointer(text)), 0, uintptr(unsafe.Pointer(&f.value)), uintptr(unsafe.Pointer(&f.kind)), 0)
	if isFault(hr) {
		return nil, failed("Get", hr)
	}
	return f, nil
}

// set writes a property. Texts are overwritten after use: they may be secret.
func (o object) set(name string, value any) error {
	text, err := wide(name)
	if err != nil {
		return err
	}
	v, err := variant(value)
	if err != nil {
		return err
	}
	defer wipe(v)
	if hr := o.call(objectPut, uintptr(unsafe.Pointer(text)), 0, uintptr(unsafe.Pointer(v)), 0); isFault(hr) {
		return failed("Put", hr)
	}
	return nil
}

// each enumerates the properties of an object, without those of the system.
func (o object) each(use func(name string, f *field) error) error {
	const withoutSystem, noMore = 0x40, 0x40005
	if hr := o.call(objectBeginEnumeration, withoutSystem); isFault(hr) {
		return failed("BeginEnumeration", hr)
	}
	defer o.call(objectEndEnumeration)
	for {
		f, name := new(field), new(bstr)
		hr := o.call(objectNext, 0, uintptr(unsafe.Pointer(&name.start)), uintptr(unsafe.Pointer(&f.value)), uintptr(unsafe.Pointer(&f.kind)), 0)
		if isFault(hr) {
			return failed("Next", hr)
		}
		if hr == noMore || name.start == nil {
			return nil
		}
		err := use(ole.BstrToString(name.start), f)
		name.free()
		f.clear()
		if err != nil {
			return err
		}
	}
}

// parameters makes an empty set of a method's parameters. It is the zero object if the method has none.
// https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemclassobject-getmethod
func (o object) parameters(method string) (object, error) {
	text, err := wide(method)
	if err != nil {
		return object{}, err
	}
	var in, made *unknown
	if hr := o.call(objectGetMethod, uintptr(unsafe.Pointer(text)), 0, uintptr(unsafe.Pointer(&in)), 0); isFault(hr) {
		return object{}, failed("GetMethod", hr)
	}
	if in == nil {
		return object{}, nil
	}
	defer in.release()
	if hr := in.call(objectSpawnInstance, 0, uintptr(unsafe.Pointer(&made))); isFault(hr) {
		return object{}, failed("SpawnInstance", hr)
	}
	return object{made}, nil
}

// instance reads a row with its path: the named properties, or all of them.
func (o object) instance(namespace string, names []string) (Instance, error) {
	path, err := o.path()
	if err != nil {
		return Instance{}, err
	}
	properties, err := o.properties(names, 0)
	if err != nil {
		return Instance{}, err
	}
	return Instance{Namespace: namespace, Path: path, Properties: properties}, nil
}

// properties reads the named properties, or all of them. One that there is not is left out.
func (o object) properties(names []string, depth int) (map[string]any, error) {
	read := make(map[string]any)
	take := func(name string, f *field) error {
		value, err := f.convert(depth)
		if err != nil {
			return fmt.Errorf("property %s: %w", name, err)
		}
		read[name] = value
		return nil
	}
	if names == nil {
		return read, o.each(take)
	}
	for _, name := range names {
		f, err := o.get(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("property %s: %w", name, err)
		}
		err = take(name, f)
		f.clear()
		if err != nil {
			return nil, err
		}
	}
	return read, nil
}

// path is empty for rows that were read without their keys.
func (o object) path() (string, error) {
	f, err := o.get("__PATH")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.clear()
	value, err := f.convert(0)
	if err != nil || value == nil {
		return "", err
	}
	path, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("__PATH is a %T, not text", value)
	}
	return strings.TrimRight(path, "\x00"), nil // it may be counted with the zeros behind it
}
