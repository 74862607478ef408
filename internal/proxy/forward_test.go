package proxy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// forwardSpec allows the driver one service of the pipe "front", and one unknown method of filesystem-v1.
var forwardSpec = acl.Spec{
	Modes: []acl.PipeMode{{Pipe: "filesystem-v2alpha1", Mode: access.LogOnly}},
	Rules: []acl.Rule{
		{Name: "front", Pipes: []string{`\\.\pipe\front`}, Operations: []string{"/a.B/*"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}},
		{Name: "new", Pipes: []string{"filesystem-*"}, Operations: []string{"*", "/v1.Filesystem/New"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}},
	},
}

func forwarding(t *testing.T, pass serveFunc) func(*Options) {
	t.Helper()
	policy, err := acl.New(forwardSpec)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) {
		o.Rules = func(string, string) *Rules { return Listed(policy) }
		o.Pass = func(ctx context.Context, _ apiserver.GroupVersion, fullMethod string, stream grpc.ServerStream) error {
			return pass(ctx, fullMethod, stream)
		}
	}
}

func ask(t *testing.T, c *grpc.ClientConn, method string) (raw.Message, error) {
	t.Helper()
	sent, got := raw.Message{1, 2, 3}, raw.Message(nil)
	err := c.Invoke(within(t), method, &sent, &got, grpc.ForceCodecV2(raw.Codec{}))
	return got, err
}

func TestUnknownMethodsArePassedOnlyIfTheyAreNamed(t *testing.T) {
	passed := 0
	f := start(t, "unix", forwarding(t, func(_ context.Context, _ string, s grpc.ServerStream) error {
		passed++
		var m raw.Message
		return errors.Join(s.RecvMsg(&m), s.SendMsg(&m))
	}))
	c := f.client(t, "filesystem-v1")
	if got, err := ask(t, c, "/v1.Filesystem/New"); err != nil || string(got) != "\x01\x02\x03" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, method := range []string{"/v1.Filesystem/Newer", "/v1.Filesystem/mkdir", "/v1.Filesystem/New/", "/v1.Disk/New"} {
		if _, err := ask(t, c, method); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", method, err)
		}
	}
	// LogOnly lets known operations pass, and nothing that nobody can read.
	if _, err := ask(t, f.client(t, "filesystem-v2alpha1"), "/v2alpha1.Filesystem/New"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("LogOnly: %v", err)
	}
	if passed != 1 {
		t.Errorf("%d calls were passed on", passed)
	}
	f.mustWork(t)
}

func TestWithoutPassUnknownMethodsAreNotThere(t *testing.T) {
	f := start(t, "unix", forwarding(t, nil), func(o *Options) { o.Pass = nil })
	if _, err := ask(t, f.client(t, "filesystem-v1"), "/v1.Filesystem/New"); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

func TestPanicWhilePassingOnIsRecorded(t *testing.T) {
	f := start(t, "unix", forwarding(t, func(context.Context, string, grpc.ServerStream) error { panic("secret") }))
	_, err := ask(t, f.client(t, "filesystem-v1"), "/v1.Filesystem/New")
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if e := f.log.await(t, 1, terminal)[0]; e.Stage != audit.StagePanic || e.Outcome.Result != audit.ResultPanic {
		t.Errorf("record %+v, outcome %+v", e, e.Outcome)
	}
}

func TestForwardedPipesThatMeanNothingAreRefused(t *testing.T) {
	serve := func(context.Context, string, grpc.ServerStream) error { return nil }
	for name, forward := range map[string][]Forwarded{
		"no name":                {{Serve: serve}},
		"a pipe of the node API": {{Pipe: "CSI-proxy-disk-v1", Serve: serve}},
		"nothing behind it":      {{Pipe: "front"}},
		"one name twice":         {{Pipe: "front", Serve: serve}, {Pipe: "FRONT", Serve: serve}},
	} {
		if _, err := New(Options{Forward: forward}); err == nil || !strings.Contains(err.Error(), "Options.Forward") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
