package winhost

import (
	"errors"

	"golang.org/x/sys/windows"
)

// failed says of an error of Windows what was being done to what, with its number.
func failed(function, object string, err error) error {
	if err == nil {
		return nil
	}
	var number windows.Errno
	if !errors.As(err, &number) {
		return &codeError{operation: function, object: object, meaning: meaning{err.Error(), err}}
	}
	kind := win32Codes.in(uint32(number)).kind
	if kind == nil {
		kind = number
	}
	return &codeError{function, object, uint32(number), meaning{number.Error(), kind}}
}
