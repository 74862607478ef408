package apiserver

import (
	"context"
	"net"
	"reflect"
	"testing"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta3"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	fsv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	fsv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	fsv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta2"
	sysv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volv1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	volv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	volv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	volv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	volv1beta3 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	volv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/pipeguard/pipeguard/test/memnet"
)

// stubs are the published clients of every served version.
var stubs = map[GroupVersion]func(*grpc.ClientConn) any{
	{"filesystem", "v1alpha1"}: func(c *grpc.ClientConn) any { return fsv1alpha1.NewFilesystemClient(c) },
	{"filesystem", "v1beta1"}:  func(c *grpc.ClientConn) any { return fsv1beta1.NewFilesystemClient(c) },
	{"filesystem", "v1beta2"}:  func(c *grpc.ClientConn) any { return fsv1beta2.NewFilesystemClient(c) },
	{"filesystem", "v1"}:       func(c *grpc.ClientConn) any { return fsv1.NewFilesystemClient(c) },
	{"filesystem", "v2alpha1"}: func(c *grpc.ClientConn) any { return fsv2alpha1.NewFilesystemClient(c) },
	{"volume", "v1alpha1"}:     func(c *grpc.ClientConn) any { return volv1alpha1.NewVolumeClient(c) },
	{"volume", "v1beta1"}:      func(c *grpc.ClientConn) any { return volv1beta1.NewVolumeClient(c) },
	{"volume", "v1beta2"}:      func(c *grpc.ClientConn) any { return volv1beta2.NewVolumeClient(c) },
	{"volume", "v1beta3"}:      func(c *grpc.ClientConn) any { return volv1beta3.NewVolumeClient(c) },
	{"volume", "v1"}:           func(c *grpc.ClientConn) any { return volv1.NewVolumeClient(c) },
	{"volume", "v2alpha1"}:     func(c *grpc.ClientConn) any { return volv2alpha1.NewVolumeClient(c) },
	{"system", "v1alpha1"}:     func(c *grpc.ClientConn) any { return sysv1alpha1.NewSystemClient(c) },
	{"disk", "v1"}:             func(c *grpc.ClientConn) any { return diskv1.NewDiskClient(c) },
	{"disk", "v1alpha1"}:       func(c *grpc.ClientConn) any { return diskv1alpha1.NewDiskClient(c) },
	{"disk", "v1beta1"}:        func(c *grpc.ClientConn) any { return diskv1beta1.NewDiskClient(c) },
	{"disk", "v1beta2"}:        func(c *grpc.ClientConn) any { return diskv1beta2.NewDiskClient(c) },
	{"disk", "v1beta3"}:        func(c *grpc.ClientConn) any { return diskv1beta3.NewDiskClient(c) },
	{"iscsi", "v1alpha1"}:      func(c *grpc.ClientConn) any { return iscsiv1alpha1.NewIscsiClient(c) },
	{"iscsi", "v1alpha2"}:      func(c *grpc.ClientConn) any { return iscsiv1alpha2.NewIscsiClient(c) },
	{"smb", "v1"}:              func(c *grpc.ClientConn) any { return smbv1.NewSmbClient(c) },
	{"smb", "v1alpha1"}:        func(c *grpc.ClientConn) any { return smbv1alpha1.NewSmbClient(c) },
	{"smb", "v1beta1"}:         func(c *grpc.ClientConn) any { return smbv1beta1.NewSmbClient(c) },
	{"smb", "v1beta2"}:         func(c *grpc.ClientConn) any { return smbv1beta2.NewSmbClient(c) },
}

func loadAll(t testing.TB) []*API {
	t.Helper()
	apis, err := Load(Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	return apis
}

func find(t testing.TB, group, version, method string) (*API, Method) {
	t.Helper()
	for _, a := range loadAll(t) {
		if a.GroupVersion() == (GroupVersion{group, version}) {
			if m, ok := a.Method(method); ok {
				return a, m
			}
		}
	}
	t.Fatalf("no method %s in %s %s", method, group, version)
	return nil, Method{}
}

// serve runs a version over an in-memory connection and returns a client's end.
func serve(t testing.TB, a *API, h Handler, onBad func(context.Context, string, error), options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	listener := memnet.Listen()
	server := grpc.NewServer(options...)
	server.RegisterService(a.Desc(h, onBad), nil)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return conn
}

// invoke calls a method of a published client.
func invoke(ctx context.Context, client any, method string, request proto.Message) (proto.Message, error) {
	out := reflect.ValueOf(client).MethodByName(method).Call([]reflect.Value{
		reflect.ValueOf(ctx), reflect.ValueOf(protoadapt.MessageV1Of(request)),
	})
	if err, failed := out[1].Interface().(error); failed {
		return nil, err
	}
	return protoadapt.MessageV2Of(out[0].Interface().(protoadapt.MessageV1)), nil
}
