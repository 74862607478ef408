package fakehost

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

var (
	here  = handler.TargetPortal{Address: PortalAddress, Port: 3260}
	chap  = handler.Login{Auth: handler.AuthOneWayCHAP, Username: CHAPUser, Secret: handler.NewSecret(CHAPSecret)}
	both  = handler.Login{Auth: handler.AuthMutualCHAP, Username: CHAPUser, Secret: handler.NewSecret(CHAPSecret)}
	wrong = handler.Login{Auth: handler.AuthOneWayCHAP, Username: CHAPUser, Secret: handler.NewSecret("wr0ng")}
)

func TestTargetsRefuse(t *testing.T) {
	ctx := t.Context()
	elsewhere := handler.TargetPortal{Address: PortalAddress, Port: 3261}
	tests := []struct {
		name string
		do   func(w world) error
		want error
	}{
		{"adding a portal that is not there", func(w world) error { return w.AddTargetPortal(ctx, elsewhere) }, fs.ErrNotExist},
		{"discovering at an unknown portal", func(w world) error { _, err := w.DiscoverTargetPortal(ctx, elsewhere); return err }, fs.ErrNotExist},
		{"removing an unknown portal", func(w world) error { return w.RemoveTargetPortal(ctx, elsewhere) }, fs.ErrNotExist},
		{"discovering at a portal that was not added", func(w world) error {
			w.must(w.RemoveTargetPortal(ctx, here))
			_, err := w.DiscoverTargetPortal(ctx, here)
			return err
		}, fs.ErrNotExist},
		{"connecting an unknown target", func(w world) error { return w.ConnectTarget(ctx, here, "iqn.2026-01.example:none", handler.Login{}) }, fs.ErrNotExist},
		{"connecting without the secret", func(w world) error { return w.ConnectTarget(ctx, here, CHAPTarget, handler.Login{}) }, fs.ErrPermission},
		{"connecting with a wrong secret", func(w world) error { return w.ConnectTarget(ctx, here, CHAPTarget, wrong) }, fs.ErrPermission},
		{"connecting with too little", func(w world) error { return w.ConnectTarget(ctx, here, MutualTarget, chap) }, fs.ErrPermission},
		{"connecting to a target that cannot prove itself", func(w world) error { return w.ConnectTarget(ctx, here, MutualTarget, both) }, fs.ErrPermission},
		{"disconnecting an unknown target", func(w world) error { return w.DisconnectTarget(ctx, here, "iqn.2026-01.example:none") }, fs.ErrNotExist},
		{"disks of an unknown target", func(w world) error {
			_, err := w.TargetDisks(ctx, here, "iqn.2026-01.example:none")
			return err
		}, fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.must(w.AddTargetPortal(ctx, here))
			if err := tt.do(w); !errors.Is(err, tt.want) || strings.Contains(err.Error(), "wr0ng") {
				t.Fatalf("error = %v, want %v", err, tt.want)
			}
			if len(w.disks) != 4 {
				t.Errorf("the host has %d disks", len(w.disks))
			}
		})
	}
}

func TestTargetsBringTheirDisksAndTakeThemAway(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	for range 2 {
		w.must(w.AddTargetPortal(ctx, here))
	}
	portals, err := w.ListTargetPortals(ctx)
	w.must(err)
	names, err := w.DiscoverTargetPortal(ctx, here)
	w.must(err)
	if diff := cmp.Diff([]handler.TargetPortal{here}, portals); diff != "" {
		t.Errorf("portals (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]handler.IQN{OpenTarget, CHAPTarget, MutualTarget}, names); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	w.must(w.SetMutualCHAPSecret(ctx, handler.NewSecret(MutualSecret)))
	for target, login := range map[handler.IQN]handler.Login{OpenTarget: {}, CHAPTarget: chap, MutualTarget: both} {
		w.must(w.DisconnectTarget(ctx, here, target))
		if disks, err := w.TargetDisks(ctx, here, target); len(disks) != 0 || err != nil {
			t.Errorf("disks of %s, which is not connected: %v, %v", target, disks, err)
		}
		w.must(w.ConnectTarget(ctx, here, target, login))
		w.must(w.ConnectTarget(ctx, here, target, login))
		disks, err := w.TargetDisks(ctx, here, target)
		w.must(err)
		if len(disks) != 1 {
			t.Fatalf("disks of %s: %v", target, disks)
		}
		w.must(w.PartitionDisk(ctx, disks[0], nothing))
		w.must(w.FormatVolume(ctx, NewVolume(disks[0]), nothing))
		w.must(w.DisconnectTarget(ctx, here, target))
		if _, err := w.DiskSize(ctx, disks[0]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the disk stayed: %v", err)
		}
		w.must(w.ConnectTarget(ctx, here, target, login))
		if is, err := w.IsVolumeFormatted(ctx, NewVolume(disks[0])); !is || err != nil {
			t.Errorf("the disk came back as another: %v, %v", is, err)
		}
	}
	if all := fmt.Sprintf("%+v", w.Ledger()); strings.Contains(all, "s3cret") {
		t.Errorf("ledger = %s", all)
	}
}
