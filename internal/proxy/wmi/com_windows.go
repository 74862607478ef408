package wmi

import (
	"strings"
	"syscall"
	"unsafe"

	"github.com/go-ole/go-ole"
	"golang.org/x/sys/windows"
)

var (
	ole32    = windows.NewLazySystemDLL("ole32.dll")
	oleaut32 = windows.NewLazySystemDLL("oleaut32.dll")

	coIncrementMTAUsage = ole32.NewProc("CoIncrementMTAUsage")
	coSetProxyBlanket   = ole32.NewProc("CoSetProxyBlanket")
	coCreateInstance    = ole32.NewProc("CoCreateInstance")
	getErrorInfo        = oleaut32.NewProc("GetErrorInfo")
)

// unknown is where a pointer to a COM interface points. We call by the place in the table of methods, which is fixed for ever.
type unknown struct{ methods *[26]uintptr }

// Places in IUnknown.
const (
	queryInterface = 0
	releaseOne     = 2
)

// call calls a method and returns its HRESULT. What the arguments point to stays where it is until then.
//
//go:uintptrescapes
func (u *unknown) call(method int, args ...uintptr) uint32 {
	all := append(make([]uintptr, 0, 12), uintptr(unsafe.Pointer(u)))
	hr, _, _ := syscall.SyscallN(u.methods[method], append(all, args...)...)
	return hresult(hr)
}

func (u *unknown) release() {
	if u != nil {
		u.call(releaseOne)
	}
}

// as asks an object for another of its interfaces, to be released by the caller.
func (u *unknown) as(iid *ole.GUID) (*unknown, error) {
	var other *unknown
	if hr := u.call(queryInterface, uintptr(unsafe.Pointer(iid)), uintptr(unsafe.Pointer(&other))); isFault(hr) {
		return nil, &Error{Code: hr, At: "QueryInterface"}
	}
	return other, nil
}

// hresult is what a COM function has returned, of which only 32 bits are meant.
func hresult(r uintptr) uint32 { return uint32(r) } // #nosec G115 -- as the comment says

// isFault reports whether an HRESULT is an error. There are other successes than 0.
func isFault(hr uint32) bool { return hr&0x80000000 != 0 }

// failed makes an error of a failed call, with what its object says about it.
// https://learn.microsoft.com/windows/win32/api/oleauto/nf-oleauto-geterrorinfo
func failed(at string, hr uint32) error {
	const getDescription = 5 // of IErrorInfo
	err := &Error{Code: hr, At: at}
	var info *unknown
	if got, _, _ := getErrorInfo.Call(0, uintptr(unsafe.Pointer(&info))); hresult(got) == 0 && info != nil {
		defer info.release()
		var text *uint16
		if !isFault(info.call(getDescription, uintptr(unsafe.Pointer(&text)))) {
			err.Text = strings.TrimSpace(ole.BstrToString(text))
			_ = ole.SysFreeString((*int16)(unsafe.Pointer(text)))
		}
	}
	if hr&0xFFFF0000 == 0x80070000 { // an error of the system, which has a text for it
		err.System = strings.TrimSpace(syscall.Errno(hr & 0xFFFF).Error())
	}
	return err
}

// bstr is a text that COM can read. The caller frees it.
type bstr struct{ start *uint16 }

func newBSTR(text string) bstr { return bstr{(*uint16)(unsafe.Pointer(ole.SysAllocStringLen(text)))} }

func (b bstr) arg() uintptr { return uintptr(unsafe.Pointer(b.start)) } // it is not in Go's memory and does not move

func (b bstr) free() { _ = ole.SysFreeString((*int16)(unsafe.Pointer(b.start))) }

// wide is a text that ends with a NUL. It is in Go's memory.
func wide(text string) (*uint16, error) { return windows.UTF16PtrFromString(text) }
