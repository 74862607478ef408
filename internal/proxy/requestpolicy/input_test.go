package requestpolicy

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	sysapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func TestInputIsWhatPoliciesAreToldItIs(t *testing.T) {
	in, err := Input(callOf("disk", "SetDiskState", &diskapi.SetDiskStateRequest{DiskNumber: 7, IsOnline: true}), driver())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"group":"disk","method":"SetDiskState","named":false,"node":"win-1","now":"2026-01-02T03:04:05Z","operation":"SetDiskState",` +
		`"peer":{"assurance":"pod","container":{"hostProcess":false,"id":"c0ffee","image":"registry.example/driver:1","name":"plugin"},` +
		`"pod":{"name":"driver-x","namespace":"kube-system","serviceAccount":"driver","uid":"u"},` +
		`"process":{"exe":"\\Device\\HarddiskVolume3\\driver.exe","pid":4242,"start":"2026-01-02T02:04:05Z"},"token":false,"user":{"name":"","sid":"S-1-5-93-2-1"}},` +
		`"pipe":"csi-proxy-disk-v1","request":{"disk_number":7,"is_online":true},"version":"v1"}`
	if diff := cmp.Diff(want, text(t, in)); diff != "" {
		t.Error(diff)
	}
}

func TestRequestIsShownInTheTypesOfItsFields(t *testing.T) {
	for _, c := range []struct {
		name string
		call *apiserver.Call
		want string
	}{
		{"64 bits are a number, exact", callOf("volume", "ResizeVolume", &volapi.ResizeVolumeRequest{VolumeId: "v", SizeBytes: -1<<63 + 1}),
			`{"size_bytes":-9223372036854775807,"volume_id":"v"}`},
		{"32 bits without a sign", callOf("disk", "PartitionDisk", &diskapi.PartitionDiskRequest{DiskNumber: 1<<32 - 1}), `{"disk_number":4294967295}`},
		{"what is not set is what it means", callOf("filesystem", "Rmdir", &fsapi.RmdirRequest{}), `{"force":false,"path":""}`},
		{"a text stays text, whatever it looks like", callOf("filesystem", "Mkdir", &fsapi.MkdirRequest{Path: `{"path":1}`}), `{"path":"{\"path\":1}"}`},
		{"a number in a text is no number", callOf("system", "StopService", &sysapi.StopServiceRequest{Name: "9223372036854775807"}),
			`{"force":false,"name":"9223372036854775807"}`},
		{"null in a text is no null", callOf("filesystem", "Mkdir", &fsapi.MkdirRequest{Path: "null"}), `{"path":"null"}`},
		{"the mark of a secret in a text is a text", callOf("filesystem", "Mkdir", &fsapi.MkdirRequest{Path: "[redacted]"}), `{"path":"[redacted]"}`},
		{"enums have names", callOf("iscsi", "ConnectTarget", &iscsiapi.ConnectTargetRequest{AuthType: iscsiapi.AuthenticationType_ONE_WAY_CHAP}),
			`{"auth_type":"ONE_WAY_CHAP","chap_username":"","iqn":"","target_portal":null}`},
		{"an unknown enum is its number", callOf("iscsi", "ConnectTarget", &iscsiapi.ConnectTargetRequest{AuthType: -7}),
			`{"auth_type":-7,"chap_username":"","iqn":"","target_portal":null}`},
		{"a message that is set and empty is no null", callOf("iscsi", "AddTargetPortal", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{}}),
			`{"target_portal":{"target_address":"","target_port":0}}`},
		{"a secret is absent", callOf("smb", "NewSmbGlobalMapping", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `\\s\h`, LocalPath: "l", Username: "u", Password: "s3cret"}),
			`{"local_path":"l","remote_path":"\\\\s\\h","username":"u"}`},
		{"an empty secret is absent, too", callOf("smb", "NewSmbGlobalMapping", &smbapi.NewSmbGlobalMappingRequest{}), `{"local_path":"","remote_path":"","username":""}`},
		{"a text that nobody has classified is absent", callOf("nfs", "Mkdir", &fsapi.MkdirRequest{Path: "s3cret"}), `{}`},
		{"a list of them as well", callOf("nfs", "List", &volapi.ListVolumesOnDiskResponse{VolumeIds: []string{"s3cret"}}), `{}`},
		{"a list", callOf("volume", "List", &volapi.ListVolumesOnDiskResponse{VolumeIds: []string{"a", "b"}}), `{"volume_ids":["a","b"]}`},
		{"a call that is passed on unread", callOf(`\\.\pipe\other`, "/x.Y/Z", nil), `null`},
		{"bytes that nobody has classified are absent", callOf("nfs", "X", wrapperspb.Bytes([]byte("abc"))), `{}`},
		{"a fraction", callOf("nfs", "X", wrapperspb.Double(0.5)), `{"value":0.5}`},
		{"seconds", callOf("nfs", "X", &durationpb.Duration{Seconds: -1 << 62}), `{"nanos":0,"seconds":-4611686018427387904}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shown(t, c.call)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatCannotBeShownWholeIsNotShown(t *testing.T) {
	long := strings.Repeat("x", maxText)
	mkdir := func(path string) *apiserver.Call {
		return callOf("filesystem", "Mkdir", &fsapi.MkdirRequest{Path: path})
	}
	many := func(n int) *apiserver.Call {
		return callOf("volume", "List", &volapi.ListVolumesOnDiskResponse{VolumeIds: make([]string, n)})
	}
	of := func(change func(*Circumstances)) *Circumstances {
		s := driver()
		change(s)
		return s
	}
	e := evaluator(t, policy.Options{}, nil)
	for name, c := range map[string]struct {
		call *apiserver.Call
		s    *Circumstances
		want string
	}{
		"a text of one byte too many":    {mkdir(long + "x"), driver(), "request.path has more than 1024 bytes"},
		"a huge text":                    {mkdir(strings.Repeat(long, 4096)), driver(), "request.path has more than 1024 bytes"},
		"a text that is not UTF-8":       {mkdir("a\xff"), driver(), "request.path is not UTF-8"},
		"half a character":               {mkdir("\xed\xa0\x80"), driver(), "request.path is not UTF-8"},
		"too many entries":               {many(maxEntries + 1), driver(), "request.volume_ids has more than 64 entries"},
		"a long text in a list":          {callOf("volume", "List", &volapi.ListVolumesOnDiskResponse{VolumeIds: []string{"", long + "x"}}), driver(), "request.volume_ids has more than"},
		"a long text in a message":       {callOf("iscsi", "AddTargetPortal", &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: long + "x"}}), driver(), "request.target_portal.target_address has"},
		"a map":                          {callOf("nfs", "X", &structpb.Struct{}), driver(), "is a map"},
		"a message that contains itself": {callOf("nfs", "X", &structpb.ListValue{}), driver(), "is"},
		"no number":                      {callOf("nfs", "X", wrapperspb.Double(nan())), driver(), "request.value is not a finite number"},
		"no operation":                   {&apiserver.Call{}, driver(), "no operation"},
		"no call":                        {nil, driver(), "no operation"},
		"a program that is not UTF-8":    {mkdir(""), of(func(s *Circumstances) { s.Caller.Process.Exe = "\xff" }), "peer.process.exe is not UTF-8"},
		"a long image":                   {mkdir(""), of(func(s *Circumstances) { s.Caller.Container.Image = long + "x" }), "peer.container.image has"},
		"a long account":                 {mkdir(""), of(func(s *Circumstances) { s.Caller.User.Name = long + "x" }), "peer.user.name has"},
		"a long namespace":               {mkdir(""), of(func(s *Circumstances) { s.Caller.Pod.Namespace = long + "x" }), "peer.pod.namespace has"},
		"a long method":                  {callOf("x", long+"x", nil), driver(), "has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := Input(c.call, c.s)
			if in != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v; want %q", in, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "xx") {
				t.Errorf("the error repeats what was sent: %.100s", err)
			}
			d := e.Decide(t.Context(), c.call, c.s)
			if d.Allowed() || d.Rule != CodeInput || d.Revision == "" {
				t.Errorf("decided %+v", d)
			}
		})
	}
	for name, call := range map[string]*apiserver.Call{"a text": mkdir(long), "a list": many(maxEntries), "characters": mkdir(strings.Repeat("é", maxText/2))} {
		if _, err := Input(call, driver()); err != nil {
			t.Errorf("the longest %s: %v", name, err)
		}
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

// A secret of any request type reaches neither the input nor the reason of a denial.
func TestNoSecretIsEverInAnInput(t *testing.T) {
	const canary = "c4n4ry"
	withheldOnce := 0
	operations(t, func(op *apiserver.Operation, m apiserver.Method) {
		request := m.NewRequest()
		set(request.ProtoReflect(), canary, 1)
		call := callOf(op.Group, op.Name, request)
		params, redacted := apiserver.Params(call)
		withheldOnce += len(redacted)
		if got, want := strings.Count(shown(t, call), canary), strings.Count(string(params), canary); got != want {
			t.Errorf("%s/%s: the input has %d texts, the record %d: %s", op.Group, op.Name, got, want, params)
		}
		for _, path := range redacted {
			if last := path[strings.LastIndexByte(path, '.')+1:]; strings.Contains(shown(t, call), `"`+last+`"`) {
				t.Errorf("%s/%s: %s is in the input", op.Group, op.Name, path)
			}
		}
	})
	if withheldOnce < 3 {
		t.Errorf("only %d secrets were looked for", withheldOnce)
	}
}

// A text that cannot be shown is a secret's, too, if its field is: it is never looked at.
func TestASecretThatCannotBeShownIsNoFault(t *testing.T) {
	call := callOf("smb", "NewSmbGlobalMapping", &smbapi.NewSmbGlobalMappingRequest{Password: "\xff" + strings.Repeat("x", 5000)})
	if _, err := Input(call, driver()); err != nil {
		t.Error(err)
	}
}

// A number is less than a number and never more than every number, as a text would be.
func TestNumbersCompareAsNumbers(t *testing.T) {
	e := unchecked(t, policy.Options{}, `decision := {"allowed": input.request.size_bytes < 1000000000000, "findings": []}`)
	for size, want := range map[int64]bool{1 << 30: true, -1 << 63: true, 1<<63 - 1: false, 1_000_000_000_000: false, 999_999_999_999: true} {
		d := e.Decide(t.Context(), callOf("volume", "ResizeVolume", &volapi.ResizeVolumeRequest{SizeBytes: size}), driver())
		if d.Allowed() != want {
			t.Errorf("%d: %+v", size, d)
		}
	}
}

func TestInputAndRecordAgree(t *testing.T) {
	operations(t, func(op *apiserver.Operation, m apiserver.Method) {
		for _, value := range []string{"", "7", "[redacted]", "\u2028\"<\x00", strings.Repeat("é", 512), strings.Repeat("x", 1025), strings.Repeat("é", 600)} {
			for _, list := range []int{0, 1, 64, 65} {
				request := m.NewRequest()
				set(request.ProtoReflect(), value, list)
				call := callOf(op.Group, op.Name, request)
				live, err := Input(call, driver())
				replayed, again := FromRecord(record(t, call, driver()), false)
				switch {
				case (err == nil) != (again == nil), again != nil && !errors.Is(again, ErrNotShown):
					t.Errorf("%s/%s of %.10q: live %v, from the record %v", op.Group, op.Name, value, err, again)
				case err == nil && live.Compare(replayed) != 0:
					t.Errorf("%s/%s of %.10q:\nlive   %v\nrecord %v", op.Group, op.Name, value, live, replayed)
				}
			}
		}
	})
}

// A connection makes its caller once, and all of its calls share it.
func TestACallerThatWasMadeBeforeIsTheSame(t *testing.T) {
	e := evaluator(t, policy.Options{}, nil)
	without, with := driver(), driver()
	with.Shown, with.Caller = Show(with.Caller), caller.Caller{}
	a, errA := Input(mkdir(), without)
	b, errB := Input(mkdir(), with)
	if errA != nil || errB != nil || a.Compare(b) != 0 {
		t.Errorf("%v, %v\n%v\n%v", errA, errB, a, b)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if d := e.Decide(t.Context(), stop(), with); d.Rule != "PN001" {
					t.Errorf("%+v", d)
				}
			}
		})
	}
	all.Wait()
	with.Shown = Show(caller.Caller{Assurance: "pod", Process: caller.Process{Exe: "\xff"}})
	if d := e.Decide(t.Context(), mkdir(), with); d.Allowed() || d.Rule != CodeInput || !strings.Contains(d.Reason, "peer.process.exe is not UTF-8") {
		t.Errorf("%+v", d)
	}
}
