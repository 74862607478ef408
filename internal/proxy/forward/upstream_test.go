package forward

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"

	fs "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsalpha "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	smb "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	system "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volbeta "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
)

func TestEveryMethodIsAskedForByItsOwnNameWithoutUnknownFields(t *testing.T) {
	b := newBefore(t)
	apis, err := apiserver.Load(b.upstream.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	stranger := protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "unjudged")
	calls := 0
	for _, api := range apis {
		gv := api.GroupVersion().String()
		asked := &recorder{}
		serveEcho(t, b.back(gv), b.pipes).handler(asked.serve(nil))
		client := b.client(gv)
		for _, m := range api.Methods() {
			request := m.NewRequest()
			fill(t, request.ProtoReflect())
			want, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}
			calls++
			if _, err := unary(within(t), client, m.FullMethod, append(raw.Message(want), stranger...)); err != nil {
				t.Errorf("%s: %v", m.FullMethod, err)
				continue
			}
			method, sent := asked.last()
			if method != m.FullMethod || string(sent) != string(want) {
				t.Errorf("%s was asked for as %s, with %q and not %q", m.FullMethod, method, sent, want)
			}
		}
	}
	for _, end := range b.log.terminals(t, calls) {
		if end.Outcome.Code != "OK" || end.IntentSeq == 0 || end.What.Verb == "" || end.What.Params == nil {
			t.Errorf("%s: %+v", end.What.FullMethod, end.Outcome)
		}
	}
}

func TestUnknownFieldsWithinMessagesAreLeftOut(t *testing.T) {
	stranger := protowire.AppendVarint(protowire.AppendTag(nil, 77, protowire.VarintType), 1)
	outer := durationpb.New(1)
	outer.ProtoReflect().SetUnknown(stranger)
	if copied := known(outer); len(copied.ProtoReflect().GetUnknown()) != 0 || len(outer.ProtoReflect().GetUnknown()) == 0 {
		t.Error("they are left in, or the original is changed")
	}
	// A field of this message is a message; iscsi's requests are so.
	apis, err := apiserver.Load("iscsi")
	if err != nil {
		t.Fatal(err)
	}
	method, _ := apis[0].Method("AddTargetPortal")
	request := method.NewRequest()
	fill(t, request.ProtoReflect())
	field := request.ProtoReflect().Descriptor().Fields().ByName("target_portal")
	request.ProtoReflect().Mutable(field).Message().SetUnknown(stranger)
	if left := known(request).ProtoReflect().Get(field).Message().GetUnknown(); len(left) != 0 {
		t.Errorf("left: %x", left)
	}
}

func TestBadRequestsNeverReachTheUpstream(t *testing.T) {
	b := newBefore(t)
	e := serveEcho(t, b.back("filesystem-v1"), b.pipes)
	older := serveEcho(t, b.back("volume-v1beta1"), b.pipes)
	c := fs.NewFilesystemClient(b.client("filesystem-v1"))
	bad := []string{"", `C:\var\lib\kubelet-evil\x`, `C:\var\lib\kubelet\..\x`, `\\server\share`, `C:\Windows`, "C:/var/lib/kubelet\\x", `C:\var\lib\kubelet\x:y`, `C:\var\lib\kubelet\NUL`, kubelet}
	for _, path := range bad {
		if _, err := c.Rmdir(within(t), &fs.RmdirRequest{Path: path, Force: true}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", path, err)
		}
	}
	v := volbeta.NewVolumeClient(b.client("volume-v1beta1"))
	for _, id := range []string{"", "-1", "4294967297", "1 ", "one"} {
		if _, err := v.ListVolumesOnDisk(within(t), &volbeta.ListVolumesOnDiskRequest{DiskId: id}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("disk %q: %v", id, err)
		}
	}
	if e.accepted.Load()+older.accepted.Load() != 0 {
		t.Error("the upstream was connected to")
	}
}

func TestPowersThatNoRuleNamedNeverReachTheUpstream(t *testing.T) {
	b := newBefore(t)
	services, shares := serveEcho(t, b.back("system-v1alpha1"), b.pipes), serveEcho(t, b.back("smb-v1"), b.pipes)
	s := system.NewSystemClient(b.client("system-v1alpha1"))
	if _, err := s.StopService(within(t), &system.StopServiceRequest{Name: "RpcSs", Force: true}); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "forced stop") {
		t.Errorf("a forced stop: %v", err)
	}
	m := smb.NewSmbClient(b.client("smb-v1"))
	if _, err := m.NewSmbGlobalMapping(within(t), &smb.NewSmbGlobalMappingRequest{RemotePath: `\\server\share`}); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "NodeAccount") {
		t.Errorf("the node's account: %v", err)
	}
	if services.accepted.Load()+shares.accepted.Load() != 0 {
		t.Error("the upstream was connected to")
	}
}

func TestStatusOfTheUpstreamComesBack(t *testing.T) {
	b := newBefore(t)
	const text = "Forward to UnmountVolume failed, err=in use"
	answer := func(_ any, s grpc.ServerStream) error {
		st, err := status.New(codes.Unknown, text).WithDetails(durationpb.New(5))
		if err != nil {
			return err
		}
		return st.Err()
	}
	serveEcho(t, b.back("volume-v1beta1"), b.pipes).handler(answer)
	_, err := volbeta.NewVolumeClient(b.client("volume-v1beta1")).DismountVolume(within(t), &volbeta.DismountVolumeRequest{
		VolumeId: texts["volume_id"], Path: texts["path"],
	})
	st := status.Convert(err)
	if st.Code() != codes.Unknown || st.Message() != text || len(st.Details()) != 1 {
		t.Errorf("got %v", st.Proto())
	}
	if end := b.log.terminals(t, 1)[0]; end.Outcome.Code != "Unknown" || !strings.Contains(end.Outcome.Error, "in use") {
		t.Errorf("outcome %+v", end.Outcome)
	}
}

func TestTextsOfTheUpstreamAreWithheldBesideASecret(t *testing.T) {
	b := newBefore(t)
	const password = "c4n4ry-password"
	repeating := fmt.Sprintf("said %s, %x, %s", password, password, base64.StdEncoding.EncodeToString([]byte(password)))
	e := serveEcho(t, b.back("smb-v1"), b.pipes)
	e.handler(func(any, grpc.ServerStream) error { return status.Error(codes.Aborted, repeating) })
	c := smb.NewSmbClient(b.client("smb-v1"))
	tests := []struct {
		name     string
		request  *smb.NewSmbGlobalMappingRequest
		code     codes.Code
		text     string
		accepted int64
	}{
		{"what is refused here", &smb.NewSmbGlobalMappingRequest{RemotePath: `\\server\share`, Password: password}, codes.InvalidArgument, "username is empty, and there is a password", 0},
		{"what the upstream says", &smb.NewSmbGlobalMappingRequest{RemotePath: `\\server\share`, Username: "u", Password: password}, codes.Aborted,
			"the host's answer is withheld, since it may repeat a secret", 1},
		{"the same without a secret", &smb.NewSmbGlobalMappingRequest{RemotePath: `\\server\share`, Username: "u"}, codes.Aborted, repeating, 1},
		{"an answer that is not read", &smb.NewSmbGlobalMappingRequest{RemotePath: `\\server\share`, Username: "u", Password: password}, codes.ResourceExhausted,
			"the host's answer is withheld, since it may repeat a secret", 1},
	}
	for i, tt := range tests {
		if tt.code == codes.ResourceExhausted { // in gRPC's words, but when it was asked, these may be anybody's
			e.handler((&recorder{}).serve(make([]byte, maxAnswer+1)))
		}
		_, err := c.NewSmbGlobalMapping(within(t), tt.request)
		if st := status.Convert(err); st.Code() != tt.code || st.Message() != tt.text || e.accepted.Load() != tt.accepted {
			t.Errorf("%s: %v", tt.name, err)
		}
		if end := b.log.terminals(t, i+1)[i]; end.Outcome.Code != tt.code.String() || end.Outcome.Error != tt.text {
			t.Errorf("%s: outcome %+v", tt.name, end.Outcome)
		}
	}
}

func TestUpstreamThatIsAwayIsUnavailable(t *testing.T) {
	b := newBefore(t)
	_, err := fs.NewFilesystemClient(b.client("filesystem-v1")).Mkdir(within(t), &fs.MkdirRequest{Path: kubelet + `\x`})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), b.back("filesystem-v1")) {
		t.Errorf("got %v", err)
	}
	if end := b.log.terminals(t, 1)[0]; end.Outcome.Code != "Unavailable" || end.IntentSeq == 0 {
		t.Errorf("outcome %+v", end.Outcome)
	}
	// It was given no secret, and is not the one to say why.
	_, err = smb.NewSmbClient(b.client("smb-v1")).NewSmbGlobalMapping(within(t), &smb.NewSmbGlobalMappingRequest{RemotePath: `\\server\share`, Username: "u", Password: "c4n4ry"})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), b.back("smb-v1")) {
		t.Errorf("got %v", err)
	}
	if err := b.upstream.Ready(within(t)); err == nil || !strings.Contains(err.Error(), "group filesystem") {
		t.Errorf("ready: %v", err)
	}
	for _, group := range b.upstream.Groups() {
		api, err := apiserver.Load(group)
		if err != nil {
			t.Fatal(err)
		}
		serveEcho(t, b.back(api[0].GroupVersion().String()), b.pipes) // the oldest version alone
	}
	ready := errors.New("never asked")
	for ctx := within(t); ready != nil && ctx.Err() == nil; {
		ready = b.upstream.Ready(ctx)
	}
	if ready != nil {
		t.Error(ready)
	}
}

func TestMethodsThatNobodyHereKnows(t *testing.T) {
	b := newBefore(t)
	asked := &recorder{}
	e := serveEcho(t, b.back("filesystem-v1"), b.pipes)
	answer := random(1000)
	e.handler(asked.serve(answer))
	c := b.client("filesystem-v1")
	for _, method := range []string{"/v1.Filesystem/New", "/v9.Filesystem/Mkdir"} {
		sent := random(5000)
		got, err := unary(within(t), c, method, sent)
		if err != nil || string(got) != string(answer) {
			t.Errorf("%s: %v, %d bytes", method, err, len(got))
		}
		if name, seen := asked.last(); name != method || string(seen) != string(sent) {
			t.Errorf("%s was asked for as %s, with other bytes", method, name)
		}
	}
	for method, want := range map[string]codes.Code{
		"/v1.Filesystem/Newer":         codes.PermissionDenied, // no rule names it, whatever "*" covers
		"/v1.Disk/New":                 codes.PermissionDenied,
		"/v1.Filesystem/mkdir":         codes.PermissionDenied,
		"/v1alpha1.Filesystem/Mkdir":   codes.PermissionDenied, // served on another pipe, and known
		"/grpc.health.v1.Health/Check": codes.PermissionDenied,
		"/v9.Filesystem/Mkdir/..":      codes.PermissionDenied,
	} {
		if _, err := unary(within(t), c, method, nil); status.Code(err) != want {
			t.Errorf("%s: %v", method, err)
		}
	}
	if n := e.calls.Load(); n != 2 {
		t.Errorf("the upstream saw %d calls", n)
	}
	what := b.log.terminals(t, 8)[0].What
	want := &audit.What{
		Pipe: "csi-proxy-filesystem-v1", Group: "filesystem", Version: "v1", Method: "/v1.Filesystem/New", FullMethod: "/v1.Filesystem/New", Verb: "write",
	}
	if diff := cmp.Diff(want, what); diff != "" {
		t.Error(diff)
	}
}

func TestAKnownMethodIsNotPassedOnUnread(t *testing.T) {
	b := newBefore(t)
	gv := apiserver.GroupVersion{Group: "filesystem", Version: "v1"}
	for _, method := range []string{"/v1.Filesystem/Mkdir", "/v1alpha1.Filesystem/LinkPath", "/v1.Volume/FormatVolume"} {
		if err := b.upstream.Pass(within(t), gv, method, nil); status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := b.upstream.Pass(within(t), apiserver.GroupVersion{Group: "filesystem", Version: "v7"}, "/v7.Filesystem/New", nil); status.Code(err) != codes.Unimplemented {
		t.Errorf("a pipe that is not there: %v", err)
	}
	if _, err := b.upstream.Handle(context.Background(), &apiserver.Call{Operation: &apiserver.Operation{Group: "filesystem", Name: "Mkdir"}, Version: "v1", FullMethod: "/v1.Filesystem/Mkdir"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a call without the request that was served: %v", err)
	}
}

func TestPatternsThatMeanNothingAreRefused(t *testing.T) {
	for _, p := range []Pattern{
		{Pipe: ""}, {Pipe: "upstream"}, {Pipe: "a-*-*"}, {Pipe: "up-*", Exe: "csi-proxy.exe"}, {Pipe: "up-*", Groups: []string{"filesystem", "discs"}}, {Pipe: "up-*", Groups: []string{}},
	} {
		if _, err := NewUpstream(p, roots(t), Options{}); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
	if _, err := NewUpstream(Pattern{Pipe: "up-*"}, nil, Options{}); err == nil {
		t.Error("no working directories were taken")
	}
	u, err := NewUpstream(Pattern{Pipe: "up-*", Groups: []string{"filesystem"}}, roots(t), Options{})
	if err != nil || !cmp.Equal(u.Groups(), []string{"filesystem"}) {
		t.Errorf("groups %q, %v", u.Groups(), err)
	}
}

func TestAnswerKeepsFieldsThatOnlyTheCallerKnows(t *testing.T) {
	b := newBefore(t)
	newer := protowire.AppendString(protowire.AppendTag([]byte{8, 1}, 50, protowire.BytesType), "news")
	asked := &recorder{}
	serveEcho(t, b.back("filesystem-v1alpha1"), b.pipes).handler(asked.serve(newer))
	client := b.client("filesystem-v1alpha1")
	request, err := proto.Marshal(protoadapt.MessageV2Of(&fsalpha.IsMountPointRequest{Path: kubelet + `\x`}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unary(within(t), client, "/v1alpha1.Filesystem/IsMountPoint", request); err != nil || string(got) != string(newer) {
		t.Errorf("got %x, %v", got, err)
	}
}

func TestAnAnswerThatIsLongerThanAnyListIsRefused(t *testing.T) {
	b := newBefore(t)
	e, c := serveEcho(t, b.back("filesystem-v1"), b.pipes), fs.NewFilesystemClient(b.client("filesystem-v1"))
	for padding, want := range map[int]codes.Code{maxAnswer - 100: codes.OK, maxAnswer: codes.ResourceExhausted} {
		long := protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), make([]byte, padding))
		e.handler((&recorder{}).serve(long))
		_, err := c.PathExists(within(t), &fs.PathExistsRequest{Path: kubelet + `\a`})
		if status.Code(err) != want {
			t.Errorf("%d bytes: %v", padding, err)
		}
	}
}
