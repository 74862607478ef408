package windows

import (
	"context"
	"strings"
	"testing"

	systemapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volv1api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	volv1alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	volv1beta1api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	volv1beta2api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	volv1beta3api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	volv2alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	system "github.com/kubernetes-csi/csi-proxy/client/groups/system/v1alpha1"
	volv1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	volv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1alpha1"
	volv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta1"
	volv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta2"
	volv1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta3"
	volv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v2alpha1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// The volume and system groups run over the in-memory host: their pipes, versions and rules are the same as on a real one.
func TestEveryVersionOfVolumeAndSystemIsServedOnItsPipe(t *testing.T) {
	p := start(t, "--host", "memory")
	p.awaitPipe(`\\.\pipe\csi-proxy-system-v1alpha1`, nil) // the last one to be opened
	for version, list := range map[string]func(context.Context) ([]string, error){
		"v1alpha1": func(ctx context.Context) ([]string, error) {
			r, err := must(volv1alpha1.NewClient())(t).ListVolumesOnDisk(ctx, &volv1alpha1api.ListVolumesOnDiskRequest{DiskId: "1"})
			return r.GetVolumeIds(), err
		},
		"v1beta1": func(ctx context.Context) ([]string, error) {
			r, err := must(volv1beta1.NewClient())(t).ListVolumesOnDisk(ctx, &volv1beta1api.ListVolumesOnDiskRequest{DiskId: "1"})
			return r.GetVolumeIds(), err
		},
		"v1beta2": func(ctx context.Context) ([]string, error) {
			r, err := must(volv1beta2.NewClient())(t).ListVolumesOnDisk(ctx, &volv1beta2api.ListVolumesOnDiskRequest{DiskId: "1"})
			return r.GetVolumeIds(), err
		},
		"v1beta3": func(ctx context.Context) ([]string, error) {
			r, err := must(volv1beta3.NewClient())(t).ListVolumesOnDisk(ctx, &volv1beta3api.ListVolumesOnDiskRequest{DiskNumber: 1})
			return r.GetVolumeIds(), err
		},
		"v1": func(ctx context.Context) ([]string, error) {
			r, err := must(volv1.NewClient())(t).ListVolumesOnDisk(ctx, &volv1api.ListVolumesOnDiskRequest{DiskNumber: 1})
			return r.GetVolumeIds(), err
		},
		"v2alpha1": func(ctx context.Context) ([]string, error) {
			r, err := must(volv2alpha1.NewClient())(t).ListVolumesOnDisk(ctx, &volv2alpha1api.ListVolumesOnDiskRequest{DiskNumber: 1})
			return r.GetVolumeIds(), err
		},
	} {
		ids, err := list(bounded(t))
		if err != nil || len(ids) != 1 || ids[0] != string(fakehost.FormattedVolume) {
			t.Errorf("volume %s: %q, %v", version, ids, err)
		}
	}
	machine := must(system.NewClient())(t)
	if r, err := machine.GetBIOSSerialNumber(bounded(t), &systemapi.GetBIOSSerialNumberRequest{}); err != nil || r.GetSerialNumber() == "" {
		t.Errorf("serial number %q, %v", r.GetSerialNumber(), err)
	}
	if _, err := machine.StopService(bounded(t), &systemapi.StopServiceRequest{Name: "csiproxy"}); err == nil || !strings.Contains(err.Error(), "PermissionDenied") {
		t.Errorf("a service was stopped that no rule allows to stop: %v", err)
	}
	if _, end := p.terminal("/v1alpha1.Volume/ListVolumesOnDisk", ""); end.Outcome.Result != audit.ResultOK || end.Who.Process == nil {
		t.Errorf("recorded as %+v by %+v", end.Outcome, end.Who)
	}
	p.reconciles()
}
