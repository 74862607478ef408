package handler_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	sysapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func TestRequestsOfAnotherTypeAreTheServersFault(t *testing.T) {
	n := newNode(t, fakehost.Options{})
	_, err := n.handlers.Handle(t.Context(), &apiserver.Call{Operation: &apiserver.Operation{Group: "filesystem", Name: "Mkdir"}, Request: &fsapi.RmdirRequest{Path: root + `\x`}})
	if status.Code(err) != codes.Internal {
		t.Errorf("error = %v", err)
	}
}

func TestOnlyGroupsWithAHostAreOffered(t *testing.T) {
	roots, err := safepath.NewRoots(root)
	if err != nil {
		t.Fatal(err)
	}
	host := fakehost.New(fakehost.Options{})
	h, err := handler.New(handler.Hosts{Filesystem: host}, roots)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"filesystem"}, h.Groups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	for _, op := range []apiserver.Operation{{Group: "volume", Name: "FormatVolume"}, {Group: "filesystem", Name: "Format"}, {Group: "", Name: "Mkdir"}, {}} {
		_, err := h.Handle(t.Context(), &apiserver.Call{Operation: &op, Request: &volapi.FormatVolumeRequest{VolumeId: volume}})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%+v: error = %v", op, err)
		}
	}
	if h, err := handler.New(handler.Hosts{}, roots); err == nil || h != nil {
		t.Errorf("New without a host: %v, %v", h, err)
	}
	if h, err := handler.New(handler.Hosts{System: host}, nil); err == nil || h != nil {
		t.Errorf("New without working directories: %v, %v", h, err)
	}
	if did := host.Ledger(); len(did) != 0 {
		t.Errorf("the host has done %+v", did)
	}
}

// strange is a host whose service is in a state that the API has no word for.
type strange struct {
	handler.System
	info handler.ServiceInfo
}

func (s strange) Service(context.Context, handler.ServiceName) (handler.ServiceInfo, error) {
	return s.info, nil
}

func TestCancelledRequestsDoNotReachAHostThatWouldNotNotice(t *testing.T) {
	roots, err := safepath.NewRoots(root)
	if err != nil {
		t.Fatal(err)
	}
	h, err := handler.New(handler.Hosts{System: strange{}}, roots)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (node{handlers: h}).call(ctx, "system", &sysapi.GetServiceRequest{Name: "x"}); status.Code(err) != codes.Canceled {
		t.Errorf("error = %v", err)
	}
}

func TestStatesThatTheAPICannotSayAreErrors(t *testing.T) {
	roots, err := safepath.NewRoots(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range []handler.ServiceInfo{{StartType: 5}, {StartType: -1}, {Status: 8}, {Status: -1}} {
		h, err := handler.New(handler.Hosts{System: strange{info: info}}, roots)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (node{handlers: h}).call(t.Context(), "system", &sysapi.GetServiceRequest{Name: "x"}); status.Code(err) != codes.Internal {
			t.Errorf("%+v: error = %v", info, err)
		}
	}
}

func TestServiceNumbersAreTheAPIs(t *testing.T) {
	starts := map[handler.StartType]sysapi.StartType{
		handler.StartBoot: sysapi.StartType_BOOT, handler.StartSystem: sysapi.StartType_SYSTEM, handler.StartAutomatic: sysapi.StartType_AUTOMATIC,
		handler.StartManual: sysapi.StartType_MANUAL, handler.StartDisabled: sysapi.StartType_DISABLED,
	}
	for ours, theirs := range starts {
		if int32(ours) != int32(theirs) {
			t.Errorf("start type %d is %d (%s)", ours, theirs, theirs)
		}
	}
	states := map[handler.ServiceStatus]sysapi.ServiceStatus{
		handler.ServiceUnknown: sysapi.ServiceStatus_UNKNOWN, handler.ServiceStopped: sysapi.ServiceStatus_STOPPED,
		handler.ServiceStartPending: sysapi.ServiceStatus_START_PENDING, handler.ServiceStopPending: sysapi.ServiceStatus_STOP_PENDING,
		handler.ServiceRunning: sysapi.ServiceStatus_RUNNING, handler.ServiceContinuePending: sysapi.ServiceStatus_CONTINUE_PENDING,
		handler.ServicePausePending: sysapi.ServiceStatus_PAUSE_PENDING, handler.ServicePaused: sysapi.ServiceStatus_PAUSED,
	}
	for ours, theirs := range states {
		if int32(ours) != int32(theirs) {
			t.Errorf("status %d is %d (%s)", ours, theirs, theirs)
		}
	}
	if len(starts) != len(sysapi.StartType_name) || len(states) != len(sysapi.ServiceStatus_name) {
		t.Error("the API has more start types or states")
	}
}
