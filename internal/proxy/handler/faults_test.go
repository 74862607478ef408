package handler_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func TestEveryMethodReportsWhatTheHostReports(t *testing.T) {
	faults := map[codes.Code]error{
		codes.Internal:           errors.New("disk on fire"),
		codes.NotFound:           fmt.Errorf("on fire: %w", fs.ErrNotExist),
		codes.AlreadyExists:      fmt.Errorf("on fire: %w", fs.ErrExist),
		codes.PermissionDenied:   &fs.PathError{Op: "open", Path: "on fire", Err: fs.ErrPermission},
		codes.FailedPrecondition: fmt.Errorf("on fire: %w", handler.ErrPrecondition),
		codes.DeadlineExceeded:   fmt.Errorf("on fire: %w", context.DeadlineExceeded),
		codes.Canceled:           fmt.Errorf("on fire: %w", context.Canceled),
		codes.Unavailable:        fmt.Errorf("on fire: %w", handler.ErrUnavailable),
		codes.Unimplemented:      fmt.Errorf("on fire: %w", errors.ErrUnsupported),
		codes.InvalidArgument:    fmt.Errorf("on fire: %w", fs.ErrInvalid),
		codes.Aborted:            status.Error(codes.Aborted, "on fire"),
	}
	s := newStack(t)
	for _, m := range s.methods {
		wire := wireOf(t, good(t, m))
		for want, fault := range faults {
			asked := 0
			s.reset(t, fakehost.Options{Fault: func(string, ...string) error { asked++; return fault }})
			before := len(s.host.Ledger())
			response, err := s.call(t.Context(), m, wire)
			if st := status.Convert(err); response != nil || st.Code() != want || !strings.Contains(st.Message(), "on fire") {
				t.Errorf("%s with %v: response %v, error %v", m.FullMethod, fault, response, err)
			}
			if asked != 1 || len(s.host.Ledger()) != before {
				t.Errorf("%s with %v: the host was asked %d times and has done %+v", m.FullMethod, fault, asked, s.host.Ledger()[before:])
			}
		}
	}
}

// badTexts are values for which a request is refused, by field. An empty local path asks for no link, and an empty
// name of a user is the node, or, in a login, its own name.
var badTexts = map[string][]string{
	"path": foreign, "source_path": foreign, "target_path": foreign, "mount": foreign, "local_path": foreign[1:],
	"disk_id": {"", "-1", "1 ", "0x1", "4294967296", "4294967297", "\u0661"}, "diskID": {"", "-1", "1 ", "0x1", "4294967296", "4294967297", "\u0661"},
	"disk_name": {"", strings.Repeat("x", 511)},
	"volume_id": {"", "C:", `C:\`, `\\?\C:\`, `\\.\PhysicalDrive0`, volume[:len(volume)-1], volume + "x", volume + "' OR '1'='1", "\x00"},
	"name":      {"", " x", "x ", `a\b`, "a/b", "a'b", `a"b`, "a\nb", "\u0430", strings.Repeat("x", 257)},
	"remote_path": {"", `\\`, `\\server`, `C:\x`, `\\?\C:\x`, `\\.\pipe\x`, `\\server\..`, `\\server\share\..\x`, `\\server\share'`, `\\server\share*`, `\\server\C$`, `\\ser:ver\share`,
		"\\\\server\\share\n", strings.Repeat("x", 2000)},
	"username": {"", "a\nb", "a\x00", strings.Repeat("u", 513)}, "password": {"s3cret\x00", "s3cret\n", strings.Repeat("s3cret", 100)},
	"target_address": {"", " ", "a b", "a'", "a:1", "127.1", "0.0.0.0", "fe80::1%1", strings.Repeat("a", 300)},
	"iqn":            {"", "x", "iqn.", "iqn.2026-01.a:'", "iqn.2026-01.a:\"", `iqn.2026-01.a:\`, "iqn.2026-01.a:\n", "iqn.2026-01.a:" + strings.Repeat("x", 300)},
	"chap_username":  {"\n", "\x00", strings.Repeat("u", 513)}, "chap_secret": {"", "s3cret\x00", strings.Repeat("s3cret", 100)},
	"MutualChapSecret": {"", "s3cret\x00", "s3cret-s3cret-s3cret"},
}

// badNumbers are the same for numbers.
var badNumbers = map[string][]int64{"size": {-1, -1 << 63}, "size_bytes": {-1, -1 << 63}, "target_port": {65536, 65536 + 3260, 1<<32 - 1}, "auth_type": {3, 9, -1}}

// anyWillDo are fields of which no value is bad.
var anyWillDo = map[string]bool{"force": true, "isOnline": true, "is_online": true, "disk_number": true, "partition_number": true, "context": true}

// fieldsOf calls do for each field of a message, and of those in it.
func fieldsOf(m protoreflect.Message, do func(of protoreflect.Message, f protoreflect.FieldDescriptor)) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		if f.Message() != nil {
			fieldsOf(m.Mutable(f).Message(), do)
		}
		do(m, f)
	}
}

func TestEveryBadFieldOfEveryMethodIsRefused(t *testing.T) {
	s := newStack(t)
	s.reset(t, fakehost.Options{})
	before := len(s.host.Ledger())
	tried := 0
	for _, m := range s.methods {
		refused := func(f protoreflect.FieldDescriptor, bad any, request proto.Message) {
			t.Helper()
			tried++
			_, err := s.call(t.Context(), m, wireOf(t, request))
			st := status.Convert(err)
			if st.Code() != codes.InvalidArgument || len(st.Message()) > 1000 || strings.ContainsAny(st.Message(), "\n\x00") || strings.Contains(st.Message(), "s3cret") {
				t.Errorf("%s with %s = %.60q: error = %.300v", m.FullMethod, f.Name(), bad, err)
			}
		}
		number := func(f protoreflect.FieldDescriptor, n int64) protoreflect.Value {
			switch f.Kind() {
			case protoreflect.EnumKind:
				return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n))
			case protoreflect.Uint32Kind:
				return protoreflect.ValueOfUint32(uint32(n))
			}
			return protoreflect.ValueOfInt64(n)
		}
		request := good(t, m)
		fieldsOf(request.ProtoReflect(), func(of protoreflect.Message, f protoreflect.FieldDescriptor) {
			name := string(f.Name())
			was := of.Get(f)
			switch {
			case f.Message() != nil:
				of.Clear(f)
				refused(f, "nothing", request)
			case f.Kind() == protoreflect.StringKind:
				for _, bad := range badTexts[name] {
					of.Set(f, protoreflect.ValueOfString(bad))
					refused(f, bad, request)
				}
			default:
				for _, bad := range badNumbers[name] {
					of.Set(f, number(f, bad))
					refused(f, bad, request)
				}
			}
			if f.Message() == nil && len(badTexts[name])+len(badNumbers[name]) == 0 && !anyWillDo[name] {
				t.Errorf("nobody knows a bad %s", f.FullName())
			}
			of.Set(f, was)
		})
	}
	if did := s.host.Ledger()[before:]; len(did) != 0 {
		t.Errorf("the host has done %+v", did)
	}
	if tried < 1500 {
		t.Errorf("only %d requests were tried", tried)
	}
}
