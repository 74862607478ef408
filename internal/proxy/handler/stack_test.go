package handler_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// stack is every method of every version, from the decoding of a request to a host and back.
type stack struct {
	host    *reborn
	roots   *safepath.Roots
	methods []served
	last    *apiserver.Call // that reached the handlers
}

// reborn is a host that is as new when a test wants it.
type reborn struct{ *fakehost.Host }

type served struct {
	apiserver.Method
	gv      apiserver.GroupVersion
	handler func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)
}

func newStack(t testing.TB) *stack {
	t.Helper()
	roots, err := safepath.NewRoots(root)
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{host: &reborn{}, roots: roots}
	handlers, err := handler.New(handler.Hosts{Disk: s.host, Filesystem: s.host, Volume: s.host, SMB: s.host, ISCSI: s.host, System: s.host}, roots)
	if err != nil {
		t.Fatal(err)
	}
	apis, err := apiserver.Load(handlers.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	handle := func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
		s.last = call
		call.Permits = handler.Permits{Reformat: true}
		return handlers.Handle(ctx, call)
	}
	for _, a := range apis {
		desc := a.Desc(handle, nil)
		for i, m := range a.Methods() {
			s.methods = append(s.methods, served{m, a.GroupVersion(), desc.Methods[i].Handler})
		}
	}
	if len(apis) != 23 || len(s.methods) != 139 {
		t.Fatalf("%d versions with %d methods are served", len(apis), len(s.methods))
	}
	return s
}

// reset makes the host a new one on which every request that [good] makes succeeds.
func (s *stack) reset(t testing.TB, o fakehost.Options) {
	t.Helper()
	armed := false
	if fault := o.Fault; fault != nil {
		o.Fault = func(op string, args ...string) error {
			if !armed {
				return nil
			}
			return fault(op, args...)
		}
	}
	o.Roots = s.roots
	s.host.Host = fakehost.New(o)
	path := func(rel string) safepath.Path {
		p, err := s.roots.Check(root + `\` + rel)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	data, err := handler.ParseRemotePath(string(fakehost.DataShare))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, err := range []error{
		s.host.Mkdir(ctx, path("ok")), s.host.Mkdir(ctx, path("mounted")), s.host.MountVolume(ctx, fakehost.FormattedVolume, path("mounted"), handler.Permits{}),
		s.host.NewSMBGlobalMapping(ctx, handler.SMBMapping{Remote: data, Username: fakehost.DataUser, Password: handler.NewSecret(fakehost.DataPassword)}),
		s.host.AddTargetPortal(ctx, handler.TargetPortal{Address: fakehost.PortalAddress, Port: 3260}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	armed = true
}

// call sends a request through decoding, as its bytes.
func (s *stack) call(ctx context.Context, m served, wire []byte) (any, error) {
	s.last = nil
	return m.handler(nil, ctx, func(v any) error { return proto.Unmarshal(wire, v.(proto.Message)) }, nil)
}

// goodTexts are values with which requests succeed after [stack.reset], by field, or by operation and field.
var goodTexts = map[string]string{
	"path": root + `\ok`, "source_path": root + `\ok`, "target_path": root + `\ok`, "CreateSymlink target_path": root + `\new`, "mount": root + `\mounted`,
	"UnmountVolume target_path": root + `\mounted`, "UnmountVolume path": root + `\mounted`, "GetVolumeIDFromTargetPath target_path": root + `\mounted`,
	"disk_id": "1", "diskID": "1", "disk_name": "60022480000000000000000000000001", "volume_id": volume, "name": "MSiSCSI",
	"remote_path": string(fakehost.DataShare), "local_path": root + `\data`, "username": fakehost.DataUser, "password": fakehost.DataPassword,
	"target_address": fakehost.PortalAddress, "iqn": string(fakehost.CHAPTarget), "chap_username": fakehost.CHAPUser, "chap_secret": fakehost.CHAPSecret, "MutualChapSecret": fakehost.MutualSecret,
}

// good is a request with every field set, as a client would send it.
func good(t testing.TB, m served) proto.Message {
	t.Helper()
	request := m.NewRequest()
	fillGood(t, m.Operation.Name, request.ProtoReflect())
	return request
}

func fillGood(t testing.TB, operation string, m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch f.Kind() {
		case protoreflect.MessageKind:
			fillGood(t, operation, m.Mutable(f).Message())
		case protoreflect.StringKind:
			text, ok := goodTexts[operation+" "+string(f.Name())]
			if !ok {
				text, ok = goodTexts[string(f.Name())]
			}
			if !ok {
				t.Fatalf("nobody knows a good %s", f.FullName())
			}
			m.Set(f, protoreflect.ValueOfString(text))
		case protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		case protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(1))
		case protoreflect.Uint32Kind:
			n := uint32(1)
			if f.Name() == "target_port" {
				n = 3260
			}
			m.Set(f, protoreflect.ValueOfUint32(n))
		case protoreflect.Int64Kind:
			m.Set(f, protoreflect.ValueOfInt64(15<<30))
		default:
			t.Fatalf("nobody knows a good %s", f.FullName())
		}
	}
}

func wireOf(t testing.TB, m proto.Message) []byte {
	t.Helper()
	wire, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

func TestEveryMethodOfEveryVersionIsCarriedOut(t *testing.T) {
	s := newStack(t)
	for _, m := range s.methods {
		s.reset(t, fakehost.Options{})
		before := len(s.host.Ledger())
		response, err := s.call(t.Context(), m, wireOf(t, good(t, m)))
		if err != nil {
			t.Errorf("%s: %v", m.FullMethod, err)
			continue
		}
		if got, want := response.(proto.Message).ProtoReflect().Descriptor().FullName(), m.NewResponse().ProtoReflect().Descriptor().FullName(); got != want {
			t.Errorf("%s is answered with %s, want %s", m.FullMethod, got, want)
		}
		ledger := s.host.Ledger()
		if len(ledger) != before+1 || m.Operation.ReadOnly && ledger[before].Changed {
			t.Errorf("%s: the host has done %+v", m.FullMethod, ledger[before:])
		}
		params, _ := apiserver.Params(s.last)
		if !json.Valid(params) || strings.Contains(string(params), "s3cret") {
			t.Errorf("%s: params %s", m.FullMethod, params)
		}
	}
}

func TestCallersThatLeftFindNothingDone(t *testing.T) {
	s := newStack(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, m := range s.methods {
		s.reset(t, fakehost.Options{})
		before := len(s.host.Ledger())
		if _, err := s.call(gone, m, wireOf(t, good(t, m))); status.Code(err) != codes.Canceled || len(s.host.Ledger()) != before {
			t.Errorf("%s: error %v, done %+v", m.FullMethod, err, s.host.Ledger()[before:])
		}
	}
}
