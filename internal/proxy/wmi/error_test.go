package wmi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestErrorSaysWhatWasDone(t *testing.T) {
	for want, err := range map[string]*Error{
		"query MSFT_Disk: 0x80041010 (WBEM_E_INVALID_CLASS)":                           {Op: "query", What: "MSFT_Disk", Code: 0x80041010},
		"call C.M: 0x80041005 (WBEM_E_TYPE_MISMATCH) from Put":                         {Op: "call", What: "C.M", Code: 0x80041005, At: "Put", Text: "no"},
		"connect root\\x: 0x12345678":                                                  {Op: "connect", What: `root\x`, Code: 0x12345678},
		"0x80070005 (E_ACCESSDENIED) from CoInitializeSecurity: Access is denied. Now": {Code: 0x80070005, At: "CoInitializeSecurity", System: "Access is denied. Now", Text: "x"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestErrorMeans(t *testing.T) {
	sentinels := []error{fs.ErrNotExist, fs.ErrPermission, fs.ErrExist, errors.ErrUnsupported, context.DeadlineExceeded, fs.ErrInvalid, ErrStuck, nil}
	for code, want := range map[uint32]error{
		0x80041001: nil, // WBEM_E_FAILED
		0x80041002: fs.ErrNotExist,
		0x80041003: fs.ErrPermission,
		0x80070005: fs.ErrPermission,
		0x80041019: fs.ErrExist,
		0x8004100C: errors.ErrUnsupported,
		0x8004100E: errors.ErrUnsupported,
		0x80041010: errors.ErrUnsupported,
		0x80041024: errors.ErrUnsupported,
		0x80041069: context.DeadlineExceeded,
		0x80041008: nil, // WBEM_E_INVALID_PARAMETER
		0x80041017: nil, // WBEM_E_INVALID_QUERY: our fault
		0x800706BA: nil,
		0x00000000: nil,
		0xFFFFFFFF: nil,
	} {
		err := fmt.Errorf("wrapped: %w", &Error{Code: code})
		for _, sentinel := range sentinels {
			if got := errors.Is(err, sentinel); sentinel != nil && got != (sentinel == want) { //nolint:errorlint // sentinels are compared with each other
				t.Errorf("0x%08X is %v: %t", code, sentinel, got)
			}
		}
	}
}

func TestLostIsOnlyALostConnection(t *testing.T) {
	for code, want := range map[uint32]bool{
		0x800706BA: true, 0x800706BE: true, 0x80010108: true, 0x80010007: true, 0x80041033: true, 0x80041015: true,
		0x80041001: false, 0x80041002: false, 0x80041010: false, 0x80070005: false, 0x80041069: false, 0x80041032: false, 0: false,
	} {
		if got := isLost(fmt.Errorf("wrapped: %w", &Error{Code: code})); got != want {
			t.Errorf("0x%08X is lost: %t", code, got)
		}
	}
	if isLost(errors.New("other")) || isLost(nil) {
		t.Error("an error that is none of WMI's")
	}
}

func TestNamed(t *testing.T) {
	if err := named("query", "C", nil); err != nil {
		t.Error(err)
	}
	inner := errors.New("inner")
	for want, err := range map[string]error{
		"query C: inner":                                                       inner,
		"query C: 0x80041001 (WBEM_E_FAILED)":                                  &Error{Code: 0x80041001},
		`connect root\x: 0x8004100E (WBEM_E_INVALID_NAMESPACE)`:                &Error{Op: "connect", What: `root\x`, Code: 0x8004100E},
		"query C: parameter P: 0x80041005 (WBEM_E_TYPE_MISMATCH)":              fmt.Errorf("parameter P: %w", &Error{Code: 0x80041005}),
		"query C: after, its outcome is not known: 0x80041001 (WBEM_E_FAILED)": fmt.Errorf("after, %w: %w", ErrOutcome, &Error{Code: 0x80041001}),
	} {
		if got := named("query", "C", err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
