package apiserver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	volv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// never is a handler that must not be reached.
func never(t *testing.T) Handler {
	return func(_ context.Context, c *Call) (proto.Message, error) {
		t.Errorf("%s reached the handler with %v", c.FullMethod, c.Request)
		return nil, errors.New("reached")
	}
}

func TestDiskIDsThatAreNotDisksAreRefused(t *testing.T) {
	ids := []string{"", " ", "-1", "+1", " 1", "1 ", "1\n", "0x1", "1_0", "1.0", "1e3", "\uff11", "\u0661", "a", "\x00",
		"4294967296", "4294967297", "18446744073709551616", strings.Repeat("9", 1<<16), strings.Repeat("0", 1<<16) + "x"}
	asked := 0
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			d := m.NewRequest().ProtoReflect().Descriptor()
			field := d.Fields().ByName("diskID")
			if field == nil {
				field = d.Fields().ByName("disk_id")
			}
			if field == nil {
				continue
			}
			asked++
			var bad []string
			conn := serve(t, a, never(t), func(_ context.Context, method string, err error) {
				bad = append(bad, method)
				if len(err.Error()) > 300 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			})
			for _, id := range ids {
				bad = nil
				request := m.NewRequest()
				request.ProtoReflect().Set(field, protoString(id))
				_, err := invoke(t.Context(), stubs[a.GroupVersion()](conn), m.Name, request)
				if status.Code(err) != codes.InvalidArgument || !strings.HasPrefix(status.Convert(err).Message(), "Failed to parse diskId: err=") {
					t.Errorf("%s: disk %.20q: %v", m.FullMethod, id, err)
				}
				if strings.ContainsAny(status.Convert(err).Message(), "\n\x00") {
					t.Errorf("%s: the error for disk %.20q has its control characters", m.FullMethod, id)
				}
				if len(bad) != 1 || bad[0] != m.FullMethod {
					t.Errorf("%s: disk %.20q: reported %q", m.FullMethod, id, bad)
				}
			}
		}
	}
	if want := 3 + 1 + 2 + 4; asked != want { // volume ListVolumesOnDisk; disk PartitionDisk in v1alpha1, with DiskStats, with Set- and GetAttachState
		t.Errorf("%d methods take a disk as text, want %d", asked, want)
	}
}

func TestDiskIDsThatFitAreRead(t *testing.T) {
	_, m := find(t, "volume", "v1alpha1", "ListVolumesOnDisk")
	for id, want := range map[string]uint32{"0": 0, "1": 1, "007": 7, "4294967295": 1<<32 - 1} {
		request := m.NewRequest()
		request.ProtoReflect().Set(request.ProtoReflect().Descriptor().Fields().ByName("disk_id"), protoString(id))
		call, err := m.Call(request)
		if err != nil {
			t.Errorf("disk %q: %v", id, err)
			continue
		}
		if got := call.Request.(*volapi.ListVolumesOnDiskRequest); got.GetDiskNumber() != want || got.GetPartitionNumber() != 0 {
			t.Errorf("disk %q became %v", id, got)
		}
	}
}

func TestRequestsThatCannotBeDecodedAreReported(t *testing.T) {
	wires := map[string][]byte{
		"text that is not UTF-8":     {0x0a, 2, 0xff, 0xfe},
		"a length beyond the end":    {0x0a, 200, 'x'},
		"a field number of 0":        {0x00, 1},
		"a number that never ends":   {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a group that is not closed": {0x0b, 0x08, 1},
	}
	for name, wire := range wires {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"v1alpha1", "v1"} {
				a, m := find(t, "filesystem", version, "Mkdir")
				reported := 0
				desc := a.Desc(never(t), func(_ context.Context, method string, err error) {
					reported++
					if method != m.FullMethod || err == nil {
						t.Errorf("reported %s: %v", method, err)
					}
				})
				_, err := handlerOf(t, desc, "Mkdir")(nil, t.Context(), func(v any) error { return proto.Unmarshal(wire, v.(proto.Message)) }, nil)
				if err == nil || reported != 1 {
					t.Errorf("%s: error %v, reported %d times", version, err, reported)
				}
			}
		})
	}
}

func TestInvalidUTF8IsRefusedOnTheWire(t *testing.T) {
	a, m := find(t, "filesystem", "v1alpha1", "Mkdir")
	reported := make(chan string, 1)
	conn := serve(t, a, never(t), func(_ context.Context, method string, _ error) { reported <- method })
	err := conn.Invoke(t.Context(), m.FullMethod, []byte{0x0a, 1, 0xff}, new([]byte), grpc.ForceCodec(rawCodec{}))
	if err == nil || <-reported != m.FullMethod {
		t.Errorf("error = %v", err)
	}
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (rawCodec) Name() string                       { return "proto" }

func TestResponsesThatAreNotTheHubsAreTheServersFault(t *testing.T) {
	tests := map[string]proto.Message{
		"nothing":                         nil,
		"a response of nothing":           (*fsapi.MkdirResponse)(nil),
		"the request":                     &fsapi.MkdirRequest{},
		"a response of another operation": &fsapi.RmdirResponse{},
	}
	for name, response := range tests {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"v1alpha1", "v1", "v2alpha1"} {
				a, m := find(t, "filesystem", version, "Mkdir")
				conn := serve(t, a, func(context.Context, *Call) (proto.Message, error) { return response, nil }, nil)
				if _, err := invoke(t.Context(), stubs[a.GroupVersion()](conn), m.Name, m.NewRequest()); status.Code(err) != codes.Internal {
					t.Errorf("%s: error = %v", version, err)
				}
			}
		})
	}
}

func TestAnswersOfTheServedVersionGoOutAsTheyAre(t *testing.T) {
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			want := m.NewResponse()
			fill(want)
			conn := serve(t, a, func(_ context.Context, c *Call) (proto.Message, error) {
				if c.Served.ProtoReflect().Descriptor() != m.served.request.Descriptor() {
					t.Errorf("%s: the request was served as %T", m.FullMethod, c.Served)
				}
				return want, nil
			}, nil)
			request := m.NewRequest()
			fill(request)
			got, err := invoke(t.Context(), stubs[a.GroupVersion()](conn), m.Name, request)
			if err != nil {
				t.Errorf("%s: %v", m.FullMethod, err)
				continue
			}
			if diff := cmp.Diff(named(want), named(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", m.FullMethod, diff)
			}
		}
	}
}

func TestErrorsKeepTheirCodeAndTheOldWords(t *testing.T) {
	tests := []struct {
		name, version, method string
		err                   error
		code                  codes.Code
		text                  string
	}{
		{"a new method has no words of its own", "v1", "UnmountVolume", status.Error(codes.NotFound, "no such volume"), codes.NotFound, "no such volume"},
		{"an old method has a prefix", "v1alpha1", "DismountVolume", status.Error(codes.NotFound, "no such volume"), codes.NotFound, "Forward to UnmountVolume failed, err=no such volume"},
		{"sizes", "v1beta1", "VolumeStats", status.Error(codes.PermissionDenied, "no"), codes.PermissionDenied, "Forward to GetVolumeStats failed, err=no"},
		{"disk number", "v1beta2", "GetVolumeDiskNumber", status.Error(codes.Internal, "no"), codes.Internal, "Forward to GetDiskNumberFromVolumeID failed, err=no"},
		{"mount", "v1beta1", "GetVolumeIDFromMount", errors.New("plain"), codes.Unknown, "Forward to GetVolumeIDFromTargetPath failed, err=plain"},
		{"a context's error has its code", "v1beta1", "GetVolumeIDFromMount", context.DeadlineExceeded, codes.DeadlineExceeded, "Forward to GetVolumeIDFromTargetPath failed, err=context deadline exceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, m := find(t, "volume", tt.version, tt.method)
			conn := serve(t, a, func(context.Context, *Call) (proto.Message, error) { return nil, tt.err }, nil)
			_, err := invoke(t.Context(), stubs[a.GroupVersion()](conn), m.Name, m.NewRequest())
			if got := status.Convert(err); got.Code() != tt.code || got.Message() != tt.text {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestInterceptorsOfTheServerStandBeforeTheHandler(t *testing.T) {
	a, m := find(t, "volume", "v1alpha1", "FormatVolume")
	refuse := func(_ context.Context, req any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
		if info.FullMethod != m.FullMethod || proto.Size(req.(proto.Message)) == 0 {
			t.Errorf("the interceptor saw %v of %s", req, info.FullMethod)
		}
		return nil, status.Error(codes.ResourceExhausted, "not now")
	}
	conn := serve(t, a, never(t), nil, grpc.UnaryInterceptor(refuse))
	_, err := volv1alpha1.NewVolumeClient(conn).FormatVolume(t.Context(), &volv1alpha1.FormatVolumeRequest{VolumeId: "x"})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("error = %v", err)
	}

	swap := func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(ctx, &fsapi.MkdirRequest{Path: "x"})
	}
	conn = serve(t, a, never(t), nil, grpc.UnaryInterceptor(swap))
	_, err = volv1alpha1.NewVolumeClient(conn).FormatVolume(t.Context(), &volv1alpha1.FormatVolumeRequest{VolumeId: "x"})
	if status.Code(err) != codes.Internal {
		t.Errorf("a request of another type: error = %v", err)
	}

	pass := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(ctx, req)
	}
	reached := ""
	conn = serve(t, a, func(_ context.Context, c *Call) (proto.Message, error) {
		reached = c.Request.(*volapi.FormatVolumeRequest).GetVolumeId()
		return &volapi.FormatVolumeResponse{}, nil
	}, nil, grpc.UnaryInterceptor(pass))
	if _, err = volv1alpha1.NewVolumeClient(conn).FormatVolume(t.Context(), &volv1alpha1.FormatVolumeRequest{VolumeId: "x"}); err != nil || reached != "x" {
		t.Errorf("error = %v, volume %q", err, reached)
	}
}
