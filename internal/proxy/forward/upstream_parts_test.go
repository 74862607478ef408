package forward

import (
	"github.com/pipeguard/pipeguard/internal/core/access"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

const kubelet = `C:\var\lib\kubelet`

func roots(t testing.TB) *safepath.Roots {
	t.Helper()
	r, err := safepath.NewRoots(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// before is a proxy with the node API's pipes before an upstream.
type before struct {
	guard
	upstream *Upstream
	prefix   string
}

// allowAll lets the driver do everything that this program knows, and the methods New and those of one service.
func allowAll() acl.Spec {
	return acl.Spec{Rules: []acl.Rule{{
		Name: "driver", Pipes: []string{"*", "system-*", "iscsi-*"}, Operations: []string{"*", "/v1.Filesystem/New", "/v9.Filesystem/*"},
		Callers: []acl.CallerPattern{{User: "S-1-5-18"}}, Permits: []string{access.Reformat, access.SystemDisk},
	}}}
}

func newBefore(t testing.TB) *before {
	t.Helper()
	prefix, options := pipes(t)
	b := &before{prefix: prefix, guard: guard{t: t, log: newMemoryLog(), callers: driver(), servers: server(), pipes: options}}
	u, err := NewUpstream(Pattern{Pipe: prefix + "*-up", Exe: serverExe}, roots(t), Options{SocketDir: options.SocketDir, Servers: b.servers})
	if err != nil {
		t.Fatal(err)
	}
	b.upstream = u
	apis, err := apiserver.Load(u.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := acl.New(allowAll())
	if err != nil {
		t.Fatal(err)
	}
	b.stop = run(t, proxy.Options{
		APIs: apis, Handle: u.Handle, Pass: u.Pass,
		Listen: func(name string) (net.Listener, error) { return listen(prefix+name, options) },
		Peers:  b.callers, Rules: func(string, string) *proxy.Rules { return proxy.Listed(policy) }, Audit: b.log,
	}, b.log)
	t.Cleanup(func() {
		b.stop()
		if err := u.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		b.callers.settle(t, "callers")
		b.servers.settle(t, "servers")
	})
	return b
}

func (b *before) client(gv string) *grpc.ClientConn {
	return dial(b.t, b.prefix+"csi-proxy-"+gv, b.pipes)
}

func (b *before) back(gv string) string { return b.prefix + gv + "-up" }

// recorder is an upstream that answers every call with nothing and keeps what it was asked.
type recorder struct {
	mu    sync.Mutex
	asked []string
	bytes []raw.Message
}

func (r *recorder) serve(answer raw.Message) grpc.StreamHandler {
	return func(_ any, s grpc.ServerStream) error {
		m, err := receive(s)
		if err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(s)
		r.mu.Lock()
		r.asked, r.bytes = append(r.asked, method), append(r.bytes, m)
		r.mu.Unlock()
		return s.SendMsg(&answer)
	}
}

// last returns what was asked last.
func (r *recorder) last() (string, raw.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) == 0 {
		return "", nil
	}
	return r.asked[len(r.asked)-1], r.bytes[len(r.bytes)-1]
}

// texts are good values for fields of that name.
var texts = map[protoreflect.Name]string{
	"path": kubelet + `\a`, "source_path": kubelet + `\a`, "target_path": kubelet + `\b`, "mount": kubelet + `\a`, "local_path": kubelet + `\c`,
	"volume_id": `\\?\Volume{01234567-89ab-cdef-0123-456789abcdef}\`, "disk_id": "3", "diskID": "3", "disk_name": "naa.6001405", "name": "csiproxy",
	"remote_path": `\\server\share\dir`, "username": `DOMAIN\user`, "password": "secret", "target_address": "10.1.2.3", "iqn": "iqn.2004-10.com.example:a",
	"chap_username": "user", "chap_secret": "0123456789ab", "MutualChapSecret": "0123456789ab", "mutual_chap_secret": "0123456789ab",
}

// fill gives every field a value that is not refused.
func fill(t *testing.T, m protoreflect.Message) {
	t.Helper()
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch f.Kind() {
		case protoreflect.StringKind:
			value := texts[f.Name()]
			if value == "" {
				t.Fatalf("no value for %s", f.FullName())
			}
			m.Set(f, protoreflect.ValueOfString(value))
		case protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(f.FullName() != "v1alpha1.StopServiceRequest.force")) // which is not passed on
		case protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(1))
		case protoreflect.Uint32Kind:
			m.Set(f, protoreflect.ValueOfUint32(3))
		case protoreflect.Int64Kind:
			m.Set(f, protoreflect.ValueOfInt64(1<<30))
		case protoreflect.MessageKind:
			inner := m.NewField(f)
			fill(t, inner.Message())
			m.Set(f, inner)
		default:
			t.Fatalf("no value for %s", f.FullName())
		}
	}
}
