package proxy

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
	"github.com/pipeguard/pipeguard/test/memnet"
)

// keyring is a server of the APIs that take secrets, with everything that it lets out.
type keyring struct {
	t        *testing.T
	methods  []apiserver.Method // those whose requests have a secret
	pipes    map[string]string  // of the methods, by full name
	dir      string             // of the log
	log      *segment.Writer
	dialers  map[string]*memnet.Listener
	conns    map[string]*grpc.ClientConn
	registry *prometheus.Registry
	failing  atomic.Bool // the log takes nothing
	handle   atomic.Pointer[apiserver.Handler]
	judge    atomic.Pointer[requestpolicy.Decision]
	denying  atomic.Bool // the access list allows nothing
	stop     func()

	mu          sync.Mutex // guards the fields below
	diagnostics bytes.Buffer
	lines       bytes.Buffer // of the log, as copies get them
	inputs      bytes.Buffer // what policies are shown
	answers     bytes.Buffer // what callers are told
}

// locked writes to a buffer of the keyring.
type locked struct {
	k  *keyring
	to *bytes.Buffer
}

func (l locked) Write(b []byte) (int, error) {
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	return l.to.Write(b)
}

// read returns what is in a buffer of the keyring.
func (k *keyring) read(b *bytes.Buffer) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return b.String()
}

// Decide implements RequestPolicy: it keeps what a policy would see, and says what it is told to.
func (k *keyring) Decide(_ context.Context, call *apiserver.Call, s *requestpolicy.Circumstances) requestpolicy.Decision {
	in, err := requestpolicy.Input(call, s)
	_, _ = fmt.Fprintf(locked{k, &k.inputs}, "%v %v\n", in, err)
	if d := k.judge.Load(); d != nil {
		return *d
	}
	return requestpolicy.Decision{Effect: audit.EffectAllow}
}

// Append implements audit.Writer.
func (k *keyring) Append(ctx context.Context, e *audit.Event) (uint64, error) {
	if k.failing.Load() {
		return 0, errDisk
	}
	return k.log.Append(ctx, e)
}

func newKeyring(t *testing.T) *keyring {
	t.Helper()
	apis, err := apiserver.Load("smb", "iscsi")
	if err != nil {
		t.Fatal(err)
	}
	k := &keyring{
		t: t, pipes: map[string]string{}, dir: t.TempDir(), dialers: map[string]*memnet.Listener{}, conns: map[string]*grpc.ClientConn{}, registry: prometheus.NewRegistry(),
	}
	for _, api := range apis {
		for _, m := range api.Methods() {
			if !m.Operation.IsOpen {
				k.methods = append(k.methods, m)
				k.pipes[m.FullMethod] = api.GroupVersion().Pipe()
			}
		}
	}
	k.log, err = segment.Open(t.Context(), k.dir, segment.Options{NoSync: true, OnRecord: func(line []byte) { _, _ = locked{k, &k.lines}.Write(line) }})
	if err != nil {
		t.Fatal(err)
	}
	allow, err := acl.New(acl.Spec{Rules: []acl.Rule{{Name: "all", Pipes: []string{"smb-*", "iscsi-*"}, Operations: []string{"*"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	rules := Listed(allow)
	rules.RequestPolicy = k
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = func(time.Time, zapcore.PrimitiveArrayEncoder) {}
	server, err := New(Options{
		APIs: apis,
		Handle: func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
			return (*k.handle.Load())(ctx, call)
		},
		Listen: func(name string) (net.Listener, error) {
			l := memnet.Listen()
			k.dialers[name] = l
			return l, nil
		},
		Peers: &fakePeers{identity: driver}, Audit: k, Registerer: k.registry, Node: "node-1",
		Rules: func(string, string) *Rules {
			if k.denying.Load() {
				return closed
			}
			return rules
		},
		Log: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(locked{k, &k.diagnostics}), zap.DebugLevel), zap.AddCaller(), zap.AddStacktrace(zap.DebugLevel)),
	})
	if err != nil {
		t.Fatal(err)
	}
	opened, listen, left := make(chan struct{}), server.listen, len(apis)
	server.listen = func(name string) (net.Listener, error) {
		if left--; left == 0 {
			defer close(opened)
		}
		return listen(name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	<-opened
	k.stop = sync.OnceFunc(func() {
		for _, c := range k.conns {
			_ = c.Close()
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := k.log.Close(); err != nil {
			t.Errorf("close the log: %v", err)
		}
	})
	t.Cleanup(k.stop)
	k.does(func(_ context.Context, call *apiserver.Call) (proto.Message, error) { return k.answer(call), nil })
	return k
}

func (k *keyring) does(h apiserver.Handler) { k.handle.Store(&h) }

// answer is an empty response of the version that was asked.
func (k *keyring) answer(call *apiserver.Call) proto.Message {
	for _, m := range k.methods {
		if m.FullMethod == call.FullMethod {
			return m.NewResponse()
		}
	}
	return nil
}

// secretOf is the secret field of a method's requests.
func secretOf(m apiserver.Method) protoreflect.FieldDescriptor {
	fields := m.NewRequest().ProtoReflect().Descriptor().Fields()
	for _, name := range []protoreflect.Name{"password", "chap_secret", "MutualChapSecret"} {
		if f := fields.ByName(name); f != nil {
			return f
		}
	}
	return nil
}

// call sends a request with a secret, and keeps what the caller is told.
func (k *keyring) call(ctx context.Context, m apiserver.Method, secret string) error {
	request, response := m.NewRequest(), m.NewResponse()
	for i := range request.ProtoReflect().Descriptor().Fields().Len() {
		if f := request.ProtoReflect().Descriptor().Fields().Get(i); f.Kind() == protoreflect.StringKind {
			request.ProtoReflect().Set(f, protoreflect.ValueOf("public "+string(f.Name())))
		}
	}
	request.ProtoReflect().Set(secretOf(m), protoreflect.ValueOf(secret))
	err := k.client(m).Invoke(ctx, m.FullMethod, request, response)
	st := status.Convert(err)
	_, _ = fmt.Fprintf(locked{k, &k.answers}, "%s %v %v %v %v\n", m.FullMethod, err, st.Message(), st.Details(), response)
	return err
}

func (k *keyring) client(m apiserver.Method) *grpc.ClientConn {
	pipe := k.pipes[m.FullMethod]
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.conns[pipe]; c != nil {
		return c
	}
	c, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return k.dialers[pipe].DialContext(ctx) }))
	if err != nil {
		k.t.Fatal(err)
	}
	k.conns[pipe] = c
	return c
}

// metrics is what a scraper gets.
func (k *keyring) metrics() string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(k.registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
