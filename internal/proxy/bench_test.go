package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/test/memnet"
)

// bareServer serves the same messages without any guard.
func bareServer(b *testing.B) *grpc.ClientConn {
	b.Helper()
	apis, err := apiserver.Load("filesystem")
	if err != nil {
		b.Fatal(err)
	}
	l := memnet.Listen()
	server := grpc.NewServer()
	for _, api := range apis {
		if api.GroupVersion().Version == "v1" {
			server.RegisterService(api.Desc(func(_ context.Context, call *apiserver.Call) (proto.Message, error) { return answer(call) }, nil), nil)
		}
	}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(server.Stop)
	c, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// BenchmarkCall is the whole way of a call in memory, client included, with records that are encoded and thrown away; and
// the same without the guard.
func BenchmarkCall(b *testing.B) {
	f := start(b, "memory", func(o *Options) { o.Audit = audit.NewStream(io.Discard) })
	f.settled = true // the records are gone
	c := v1.NewFilesystemClient(f.client(b, "filesystem-v1"))
	bare := v1.NewFilesystemClient(bareServer(b))
	for name, call := range map[string]func() error{
		"allowed": func() error {
			_, err := c.Mkdir(context.Background(), &v1.MkdirRequest{Path: `C:\var\lib\kubelet\plugins\x`})
			return err
		},
		"bare": func() error {
			_, err := bare.Mkdir(context.Background(), &v1.MkdirRequest{Path: `C:\var\lib\kubelet\plugins\x`})
			return err
		},
		"denied": func() error {
			if _, err := c.Rmdir(context.Background(), &v1.RmdirRequest{Path: `C:\a`}); err == nil {
				b.Error("not denied")
			}
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIdentityAndList is what a call of a connection whose caller is known costs until the access list has answered.
func BenchmarkIdentityAndList(b *testing.B) {
	for _, n := range []int{0, 10, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d other rules", n), func(b *testing.B) {
			spec := acl.Spec{}
			for i := range n {
				spec.Rules = append(spec.Rules, acl.Rule{
					Name: fmt.Sprintf("other-%d", i), Pipes: []string{"filesystem-*"}, Operations: []string{"*"},
					Callers: []acl.CallerPattern{{Namespace: fmt.Sprintf("team-%d", i), ServiceAccount: "driver"}},
				})
			}
			spec.Rules = append(spec.Rules, acl.Rule{
				Name: "driver", Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir"}, Paths: []string{`C:\var\lib\kubelet\plugins`, `C:\var\lib\kubelet\pods`},
				Callers: []acl.CallerPattern{{Namespace: "kube-system", ServiceAccount: "driver", Container: "driver"}},
			})
			list, err := acl.New(spec)
			if err != nil {
				b.Fatal(err)
			}
			identity := caller.Caller{
				Assurance: caller.AssurancePod, Process: driver.Process, User: caller.User{SID: "S-1-5-93-2-1"},
				Pod:       caller.Pod{Namespace: "kube-system", Name: "driver-abcde", UID: "6ad0", ServiceAccount: "driver"},
				Container: caller.Container{ID: "c0ffee", Name: "driver", Image: "registry.example/driver:v1"},
			}
			rules := Listed(list)
			c := &conn{peer: &fakePeer{identity: identity}}
			p := &pipe{rules: func(string, string) *Rules { return rules }}
			r := &request{stream: &stream{conn: c}}
			paths := []string{`C:\var\lib\kubelet\plugins\driver\globalmount`}
			b.ReportAllocs()
			for b.Loop() {
				d := p.now().List.Decide(access.Call{Group: "filesystem", Version: "v1", Operation: "Mkdir", Caller: r.caller(), Paths: paths})
				if !d.Allowed {
					b.Fatal(d.Reason)
				}
			}
		})
	}
}
