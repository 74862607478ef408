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

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func mapping(password string) *apiserver.Call {
	return &apiserver.Call{
		Operation: &apiserver.Operation{Group: "smb", Name: "NewSmbGlobalMapping"},
		Request:   &smb.NewSmbGlobalMappingRequest{RemotePath: `\\s\h`, Username: "svc-user-1", Password: password},
	}
}

func TestOnlyOurOwnErrorsKeepTheirTextsBesideASecret(t *testing.T) {
	const text = `the share \\s\h is not there`
	empty := &smb.NewSmbGlobalMappingResponse{}
	own, foreign := apiserver.NewOwnError(codes.NotFound, text), status.Error(codes.NotFound, text)
	hidden := func(c codes.Code) error { return status.Error(c, withheld) }
	tests := []struct {
		name     string
		password string
		err      error
		want     error
	}{
		{"our own", "p4ss-w0rd", own, own},
		{"our own that repeats it", "s not ther", own, hidden(codes.NotFound)},
		{"our own that repeats it in capitals", "THE SHARE", own, hidden(codes.NotFound)},
		{"our own that repeats what the request asks for", "svc-user-1", apiserver.NewOwnError(codes.Internal, "SVC-USER-1 is unknown"), hidden(codes.Internal)},
		{"our own in an error of others", "p4ss-w0rd", fmt.Errorf("x: %w", own), hidden(codes.NotFound)},
		{"our own beside an error of others", "p4ss-w0rd", errors.Join(own, errors.New("x")), hidden(codes.NotFound)},
		{"a status", "p4ss-w0rd", foreign, hidden(codes.NotFound)},
		{"a status in an error", "p4ss-w0rd", fmt.Errorf("x: %w", status.Error(codes.Aborted, text)), hidden(codes.Aborted)},
		{"a status whose code is a number of its own", "p4ss-w0rd", status.Error(12345678, text), hidden(codes.Internal)},
		{"an error", "p4ss-w0rd", errors.New(text), hidden(codes.Unknown)},
		{"the end of its time", "p4ss-w0rd", context.DeadlineExceeded, hidden(codes.DeadlineExceeded)},
		{"an error that is no error", "p4ss-w0rd", okError{}, hidden(codes.Internal)},
		{"no error", "p4ss-w0rd", nil, nil},
		{"no password", "", foreign, foreign},
		{"no password, and our own", "", own, own},
		{"no password, and an error", "", errDisk, errDisk},
	}
	for _, tt := range tests {
		r := &request{call: mapping(tt.password)}
		resp, err := r.redact(t.Context(), func(context.Context, *apiserver.Call) (proto.Message, error) { return empty, tt.err })
		if fmt.Sprint(err) != fmt.Sprint(tt.want) || status.Code(err) != status.Code(tt.want) || err == nil && resp != empty {
			t.Errorf("%s: %v, %v, want %v", tt.name, resp, err, tt.want)
		}
	}
}

// How long a secret is, or of what it is made, does not show in what becomes of a text that does not have it.
func TestTheLengthOfASecretMakesNoDifference(t *testing.T) {
	own := apiserver.NewOwnError(codes.NotFound, "the share is not there")
	for _, password := range []string{"z", "zz", "zzz", "1", "4711", "word", "unreachable", "p4ss-w0rd", strings.Repeat("z", 512), strings.Repeat("z", 64<<10)} {
		for err, want := range map[error]string{own: "the share is not there", errors.New("x"): withheld, errors.New(password): withheld, errors.New(strings.Repeat("x", 64<<10)): withheld} {
			r := &request{call: mapping(password)}
			_, got := r.redact(t.Context(), func(context.Context, *apiserver.Call) (proto.Message, error) { return nil, err })
			if status.Convert(got).Message() != want {
				t.Errorf("%d characters: %v", len(password), got)
			}
		}
	}
}

// okError has the status of a success.
type okError struct{}

func (okError) Error() string              { return "p4ss-w0rd" }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, "p4ss-w0rd") }

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
	if !strings.Contains(text, t.Name()) || !strings.Contains(text, "secrets_redact_test.go:") || strings.Contains(text, "0x") || strings.Contains(text, "(...)") {
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
	}{{"no secret", open, nil}, {"no secret, error", open, errDisk}, {"a secret", closed, nil}, {"a secret, error", closed, errDisk}, {"a secret, our own error", closed, apiserver.NewOwnError(codes.NotFound, remedy)}} {
		b.Run(c.name, func(b *testing.B) {
			handle, ctx, r := next(c.err), context.Background(), &request{call: c.call}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.redact(ctx, handle)
			}
		})
	}
}
