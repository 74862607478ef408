package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// sentinels are all that the handlers branch on.
var sentinels = []error{
	fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, handler.ErrPrecondition, errUnsupported, context.DeadlineExceeded, context.Canceled,
}

func TestEveryNumberIsSaidAndMeansOneThing(t *testing.T) {
	for name, table := range map[string]codes{"storage": storageCodes, "win32": win32Codes, "iscsi": iscsiCodes} {
		for code, m := range table {
			if code == 0 {
				t.Errorf("%s: success has a meaning", name)
			}
			f := newFakeWMI(t)
			f.says("Class.Method", code)
			err := asked{WMI: f}.invoke(t.Context(), "the object", table, wmi.Call{Class: "Class", Method: "Method"})
			prefix := fmt.Sprintf("WMI Class.Method failed (target=the object): code=%d", code)
			if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.HasSuffix(err.Error(), m.text) {
				t.Errorf("%s %d: %v", name, code, err)
			}
			if kinds := kindsOf(err); len(kinds) > 1 || m.kind == nil && len(kinds) > 0 || m.kind != nil && (len(kinds) == 0 || !errors.Is(kinds[0], m.kind)) {
				t.Errorf("%s %d is %v", name, code, kinds)
			}
		}
	}
}

func kindsOf(err error) (kinds []error) {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			kinds = append(kinds, s)
		}
	}
	return kinds
}

func TestMethodsAnswerThroughCOMToo(t *testing.T) {
	tests := []struct {
		name  string
		code  uint32
		table codes
		fine  []uint32
		kind  error
	}{
		{"a number of the provider's", 0xEFFF000B, iscsiCodes, nil, fs.ErrNotExist},
		{"a number that is fine", targetLoggedIn, iscsiCodes, []uint32{targetLoggedIn}, nil},
		{"a number that is fine elsewhere", targetLoggedIn, iscsiCodes, []uint32{1}, fs.ErrExist},
		{"a system error", 0x8007052E, nil, nil, fs.ErrPermission}, // 1326
		{"an unknown system error", 0x8007FFFF, nil, nil, errAny},
		{"WMI's own", 0x80041002, storageCodes, nil, fs.ErrNotExist},
		{"WMI's own, and denied", 0x80041003, storageCodes, nil, fs.ErrPermission},
		{"a failure and no more", 0x80041001, storageCodes, nil, errAny},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeWMI(t)
			f.fails["Class.Method"] = &wmi.Error{Op: "call", What: "Class.Method", Code: test.code, Text: "as the provider says"}
			err := asked{WMI: f}.invoke(t.Context(), "the object", test.table, wmi.Call{Class: "Class", Method: "Method"}, test.fine...)
			if test.kind == nil {
				wants(t, err, nil)
				return
			}
			if errors.Is(test.kind, errAny) {
				if kinds := kindsOf(err); err == nil || len(kinds) > 0 {
					t.Errorf("got %v, which is %v", err, kinds)
				}
				return
			}
			wants(t, err, test.kind, "Class.Method", "the object", fmt.Sprintf("code=%d", test.code), "as the provider says")
		})
	}
}

func TestQueriesCarryTheNumberOfTheirAnswer(t *testing.T) {
	for code, kind := range map[uint32]error{0x80041003: fs.ErrPermission, 0x80041002: fs.ErrNotExist, 0x8004100E: errUnsupported, 0x80041010: errUnsupported} {
		f := newFakeWMI(t)
		f.fails["Class"] = &wmi.Error{Op: "query", What: "Class", Code: code}
		f.fails["path>Class"] = f.fails["Class"]
		_, err := asked{WMI: f}.row(t.Context(), "the object", wmi.Query{Namespace: wmi.Storage, Class: "Class"})
		wants(t, err, kind, "failed to query the object", fmt.Sprintf("code=%d", code))
		_, err = asked{WMI: f}.related(t.Context(), "the object", row("path", nil), "Association", "Class")
		wants(t, err, kind, "Association", "the object", fmt.Sprintf("code=%d", code))
	}
}

func TestAContextThatEndsDuringAMethodIsTheError(t *testing.T) {
	f := newFakeWMI(t)
	f.fails["Class.Method"] = context.DeadlineExceeded
	err := asked{WMI: f}.invoke(t.Context(), "the object", nil, wmi.Call{Class: "Class", Method: "Method"})
	wants(t, err, context.DeadlineExceeded, "Class.Method", "the object")
}

func TestAHostNeedsItsParts(t *testing.T) {
	roots, err := safepath.NewRoots(`C:\work`)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"nothing":                {},
		"no working directories": {WMI: newFakeWMI(t), Log: zap.NewNop()},
		"no management service":  {Roots: roots, Log: zap.NewNop()},
	} {
		if _, err := newHost(o, system{}); err == nil {
			t.Errorf("a host was made of %s", name)
		}
	}
	host, err := newHost(Options{Roots: roots, WMI: newFakeWMI(t)}, system{memory: forgetful{}})
	if err != nil {
		t.Fatal(err)
	}
	h := host.Hosts()
	if h.Disk == nil || h.Filesystem == nil || h.Volume == nil || h.SMB == nil || h.ISCSI == nil || h.System == nil {
		t.Errorf("a part is missing: %+v", h)
	}
}

// forgetful is a memory that keeps nothing.
type forgetful struct{}

func (forgetful) Load() ([]byte, error) { return nil, nil }
func (forgetful) Store([]byte) error    { return nil }
