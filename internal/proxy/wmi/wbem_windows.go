package wmi

import (
	"unsafe"

	"github.com/go-ole/go-ole"
)

// The native interfaces of WMI, as far as we use them.
// https://learn.microsoft.com/windows/win32/wmisdk/com-api-for-wmi
var (
	classLocator  = ole.NewGUID("{4590F811-1D3A-11D0-891F-00AA004B2E24}") // CLSID_WbemLocator
	idLocator     = ole.NewGUID("{DC12A687-737F-11CF-884D-00AA004B2E24}") // IID_IWbemLocator
	idClassObject = ole.NewGUID("{DC12A681-737F-11CF-884D-00AA004B2E24}") // IID_IWbemClassObject
)

// Places in the tables of methods.
const (
	locatorConnectServer = 3

	servicesGetObject  = 6
	servicesExecQuery  = 20
	servicesExecMethod = 24

	enumNext = 4

	objectGet              = 4
	objectPut              = 5
	objectBeginEnumeration = 8
	objectNext             = 9
	objectEndEnumeration   = 10
	objectSpawnInstance    = 15
	objectGetMethod        = 19
)

type (
	locator  struct{ *unknown } // IWbemLocator
	services struct{ *unknown } // IWbemServices
	rows     struct{ *unknown } // IEnumWbemClassObject
	object   struct{ *unknown } // IWbemClassObject
)

func newLocator() (locator, error) {
	const inProcess = 1
	var made *unknown
	hr, _, _ := coCreateInstance.Call(uintptr(unsafe.Pointer(classLocator)), 0, inProcess, uintptr(unsafe.Pointer(idLocator)), uintptr(unsafe.Pointer(&made)))
	if isFault(hresult(hr)) {
		return locator{}, failed("CoCreateInstance", hresult(hr))
	}
	return locator{made}, nil
}

// connect opens a namespace of this machine, with this process's rights.
// https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemlocator-connectserver
func (l locator) connect(namespace string) (services, error) {
	const useMaxWait = 0x80 // two minutes at most
	name := newBSTR(namespace)
	defer name.free()
	var made *unknown
	if hr := l.call(locatorConnectServer, name.arg(), 0, 0, 0, useMaxWait, 0, 0, uintptr(unsafe.Pointer(&made))); isFault(hr) {
		return services{}, failed("ConnectServer", hr)
	}
	if err := secure(made); err != nil {
		made.release()
		return services{}, err
	}
	return services{made}, nil
}

// secure has calls encrypted and lets WMI act with this process's rights, whatever the process has as its default.
// https://learn.microsoft.com/windows/win32/wmisdk/setting-the-security-levels-on-a-wmi-connection
func secure(proxy *unknown) error {
	const windowsNT, noAuthorization, packetPrivacy, impersonate, noCapabilities = 10, 0, 6, 3, 0
	const notAProxy = 0x80004002 // E_NOINTERFACE: an object within this process, to which nothing is sent
	hr, _, _ := coSetProxyBlanket.Call(uintptr(unsafe.Pointer(proxy)), windowsNT, noAuthorization, 0, packetPrivacy, impersonate, 0, noCapabilities)
	if code := hresult(hr); isFault(code) && code != notAProxy {
		return failed("CoSetProxyBlanket", code)
	}
	return nil
}

// query begins a query. Its faults may also come with the first row.
// https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemservices-execquery
func (s services) query(text string) (rows, error) {
	const returnImmediately, forwardOnly = 0x10, 0x20
	language, query := newBSTR("WQL"), newBSTR(text)
	defer language.free()
	defer query.free()
	var made *unknown
	if hr := s.call(servicesExecQuery, language.arg(), query.arg(), returnImmediately|forwardOnly, 0, uintptr(unsafe.Pointer(&made))); isFault(hr) {
		return rows{}, failed("ExecQuery", hr)
	}
	if err := secure(made); err != nil {
		made.release()
		return rows{}, err
	}
	return rows{made}, nil
}

// next waits for the next row as long as a second. Without a row, more tells whether there may be others.
// https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-ienumwbemclassobject-next
func (r rows) next() (row object, more bool, err error) {
	const second, one, timedOut = 1000, 1, 0x40004
	var made *unknown
	var n uint32
	hr := r.call(enumNext, second, one, uintptr(unsafe.Pointer(&made)), uintptr(unsafe.Pointer(&n)))
	switch {
	case isFault(hr):
		return object{}, false, failed("Next", hr)
	case n == 1 && made != nil:
		return object{made}, true, nil
	}
	return object{}, hr == timedOut, nil
}

// class reads a class.
func (s services) class(name string) (object, error) {
	path := newBSTR(name)
	defer path.free()
	var made *unknown
	if hr := s.call(servicesGetObject, path.arg(), 0, 0, uintptr(unsafe.Pointer(&made)), 0); isFault(hr) {
		return object{}, failed("GetObject", hr)
	}
	return object{made}, nil
}

// execute executes a method and waits for its end. in may be the zero object, and what is returned too.
// https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemservices-execmethod
func (s services) execute(path, method string, in object) (object, error) {
	target, name := newBSTR(path), newBSTR(method)
	defer target.free()
	defer name.free()
	var out *unknown
	hr := s.call(servicesExecMethod, target.arg(), name.arg(), 0, 0, uintptr(unsafe.Pointer(in.unknown)), uintptr(unsafe.Pointer(&out)), 0)
	if isFault(hr) {
		return object{}, failed("ExecMethod", hr)
	}
	return object{out}, nil
}
