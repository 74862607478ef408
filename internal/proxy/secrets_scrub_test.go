package proxy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	smb "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/secret"
)

func mapping(password string) *apiserver.Call {
	return &apiserver.Call{
		Operation: &apiserver.Operation{Group: "smb", Name: "NewSmbGlobalMapping"},
		Request:   &smb.NewSmbGlobalMappingRequest{RemotePath: `\\s\h`, Username: "svc-user-1", Password: password},
	}
}

func TestTheErrorOfTheHostIsScrubbedAndItsCodeStays(t *testing.T) {
	const text = `the share \\s\h: p4ss-w0rd is wrong`
	empty := &smb.NewSmbGlobalMappingResponse{}
	tests := []struct {
		name     string
		password string
		err      error
		want     error
	}{
		{"a status", "p4ss-w0rd", status.Error(codes.NotFound, text), status.Error(codes.NotFound, `the share \\s\h: [secret] is wrong`)},
		{"a status in an error", "p4ss-w0rd", fmt.Errorf("%q: %w", "p4ss-w0rd", status.Error(codes.Aborted, text)), status.Error(codes.Aborted, `"[secret]": rpc error: code = Aborted desc = the share \\s\h: [secret] is wrong`)},
		{"an error", "p4ss-w0rd", errors.New(text), status.Error(codes.Unknown, `the share \\s\h: [secret] is wrong`)},
		{"the end of its time", "p4ss-w0rd", context.DeadlineExceeded, status.Error(codes.DeadlineExceeded, "context deadline exceeded")},
		{"an error without it", "0ther-w0rd", status.Error(codes.NotFound, text), status.Error(codes.NotFound, text)},
		{"no password", "", status.Error(codes.NotFound, text), status.Error(codes.NotFound, text)},
		{"a password of one character", "w", status.Error(codes.NotFound, text), status.Error(codes.NotFound, secret.Withheld)},
		{"the same, and a text that does not have it", "Z", status.Error(codes.NotFound, text), status.Error(codes.NotFound, secret.Withheld)},
		{"a password that is the name of the user", "svc-user-1", errors.New("svc-user-1 is unknown"), status.Error(codes.Unknown, secret.Withheld)},
		{"a password that is the share", `\\s\hhhhh`, errors.New(`\\s\hhhhh is unknown`), status.Error(codes.Unknown, "[secret] is unknown")},
		{"an error that is no error", "p4ss-w0rd", okError{}, status.Error(codes.Internal, "[secret]")},
		{"no error", "p4ss-w0rd", nil, nil},
	}
	for _, tt := range tests {
		call := mapping(tt.password)
		r := &request{call: call}
		describe(fill(&r.event), call)
		resp, err := r.redact(t.Context(), func(context.Context, *apiserver.Call) (proto.Message, error) { return empty, tt.err })
		if fmt.Sprint(err) != fmt.Sprint(tt.want) || status.Code(err) != status.Code(tt.want) || err == nil && resp != empty {
			t.Errorf("%s: %v, %v, want %v", tt.name, resp, err, tt.want)
		}
	}
}

// okError has the status of a success.
type okError struct{}

func (okError) Error() string              { return "p4ss-w0rd" }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, "p4ss-w0rd") }

func fill(e *audit.Event) *audit.Event {
	e.What = &audit.What{}
	return e
}

// bomb is an error whose text is a panic, as that of a nil pointer is.
type bomb struct{}

func (*bomb) Error() string { panic("p4ss-w0rd") }
func (*bomb) RuntimeError() {}

func TestNoValueOfAPanicIsPrinted(t *testing.T) {
	var none *bomb
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"p4ss-w0rd", "panic with a value of type string"},
		{errors.New("p4ss-w0rd"), "panic with a value of type *errors.errorString"},
		{posing{"p4ss-w0rd"}, "panic with a value of type proxy.posing"},
		{none, "panic with a value of type *proxy.bomb"},
		{nil, "panic with a value of type <nil>"},
		{caught(func() { _ = "p4ss"[len(t.Name())] }), "panic: runtime error: index out of range [#] with length #"},
		{caught(func() { var v any = "p4ss-w0rd"; _ = v.(int) }), "panic: interface conversion: interface {} is string, not int"},
	} {
		if got := describePanic(tt.value); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func caught(f func()) (v runtime.Error) {
	defer func() { v, _ = recover().(runtime.Error) }()
	f()
	return nil
}

func TestAStackHasNoArguments(t *testing.T) {
	text := func(secret string, c rune) string {
		return func() string { return stack() }() + secret[:0] + string(c)[:0]
	}("p4ss-w0rd", 'p')
	if !strings.Contains(text, t.Name()) || !strings.Contains(text, "secrets_scrub_test.go:") || strings.Contains(text, "0x") || strings.Contains(text, "(...)") {
		t.Errorf("stack:\n%s", text)
	}
}

func TestACallWithoutSecretsPaysNothingForThem(t *testing.T) {
	call, next := openCall(t)
	for name, handle := range map[string]apiserver.Handler{"ok": next(nil), "error": next(errDisk)} {
		r := &request{call: call}
		if n := testing.AllocsPerRun(100, func() { _, _ = r.redact(context.Background(), handle) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// openCall is a call of a method that takes no secret, and what carries it out.
func openCall(t testing.TB) (*apiserver.Call, func(error) apiserver.Handler) {
	t.Helper()
	apis, err := apiserver.Load("filesystem")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := apis[0].Method("Mkdir")
	call, err := m.Call(m.NewRequest())
	if err != nil {
		t.Fatal(err)
	}
	response := m.NewResponse()
	return call, func(err error) apiserver.Handler {
		return func(context.Context, *apiserver.Call) (proto.Message, error) { return response, err }
	}
}

func BenchmarkRedact(b *testing.B) {
	open, next := openCall(b)
	closed := mapping("p4ss-w0rd")
	for _, c := range []struct {
		name string
		call *apiserver.Call
		err  error
	}{{"no secret", open, nil}, {"no secret, error", open, errDisk}, {"a secret", closed, nil}, {"a secret, error", closed, errDisk}} {
		b.Run(c.name, func(b *testing.B) {
			handle, ctx, r := next(c.err), context.Background(), &request{call: c.call}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.redact(ctx, handle)
			}
		})
	}
}
