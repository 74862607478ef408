package fakehost

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func (w world) mapping(remote string, local safepath.Path, user, password string) handler.SMBMapping {
	w.t.Helper()
	path, err := handler.ParseRemotePath(remote)
	w.must(err)
	return handler.SMBMapping{Remote: path, Local: local, Username: user, Password: handler.NewSecret(password)}
}

func TestMappingsRefuse(t *testing.T) {
	ctx := t.Context()
	tests := []struct {
		name string
		do   func(w world) error
		want error
	}{
		{"an unknown share", func(w world) error {
			return w.NewSMBGlobalMapping(ctx, w.mapping(`\\files.example\none`, safepath.Path{}, DataUser, DataPassword))
		}, fs.ErrNotExist},
		{"a server that does not answer", func(w world) error {
			return w.NewSMBGlobalMapping(ctx, w.mapping(string(AbsentShare), safepath.Path{}, "", ""))
		}, handler.ErrUnavailable},
		{"a wrong password", func(w world) error {
			return w.NewSMBGlobalMapping(ctx, w.mapping(string(DataShare), w.path("new"), DataUser, "wr0ng"))
		}, fs.ErrPermission},
		{"no user", func(w world) error {
			return w.NewSMBGlobalMapping(ctx, w.mapping(string(DataShare), w.path("new"), "", ""))
		}, fs.ErrPermission},
		{"a directory where the link should be", func(w world) error {
			return w.NewSMBGlobalMapping(ctx, w.mapping(string(DataShare), w.path("dir"), DataUser, DataPassword))
		}, fs.ErrExist},
		{"a link elsewhere where the link should be", func(w world) error {
			return w.NewSMBGlobalMapping(ctx, w.mapping(string(DataShare), w.path("link"), DataUser, DataPassword))
		}, fs.ErrExist},
		{"a missing parent of the link", func(w world) error {
			return w.NewSMBGlobalMapping(ctx, w.mapping(string(DataShare), w.path(`none\new`), DataUser, DataPassword))
		}, fs.ErrNotExist},
		{"removing what is not mapped", func(w world) error { return w.RemoveSMBGlobalMapping(ctx, DataShare) }, fs.ErrNotExist},
		{"removing an unknown share", func(w world) error { return w.RemoveSMBGlobalMapping(ctx, `\\a\b`) }, fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			if err := tt.do(w); !errors.Is(err, tt.want) || strings.Contains(err.Error(), "wr0ng") {
				t.Fatalf("error = %v, want %v", err, tt.want)
			}
			if w.exists("new") || w.isMapped(DataShare) || w.isMapped(OfferedShare) {
				t.Error("something was left behind")
			}
		})
	}
}

func TestMappingsFollowTheirCredentials(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	first := w.mapping(`\\files.example\data\A`, w.path("data"), DataUser, DataPassword)
	w.must(w.NewSMBGlobalMapping(ctx, first))
	w.must(w.NewSMBGlobalMapping(ctx, first))
	if is, err := w.IsSymlink(ctx, w.path("data")); !is || err != nil {
		t.Errorf("the link: %v, %v", is, err)
	}
	if err := w.Mkdir(ctx, w.path(`data\x`)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a path through the link: %v", err)
	}
	if err := w.NewSMBGlobalMapping(ctx, w.mapping(`\\files.example\data`, safepath.Path{}, DataUser, "wr0ng")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("other credentials for a share that is mapped: %v", err)
	}
	if is, err := w.IsSymlink(ctx, w.path("data")); !is || err != nil || !w.isMapped(DataShare) {
		t.Errorf("other credentials take the mapping away: %v, %v", is, err)
	}
	w.must(w.NewSMBGlobalMapping(ctx, first))
	w.must(w.NewSMBGlobalMapping(ctx, w.mapping(string(OfferedShare), safepath.Path{}, "", "")))
	w.must(w.RemoveSMBGlobalMapping(ctx, DataShare))
	if is, err := w.IsSymlink(ctx, w.path("data")); is || err != nil {
		t.Errorf("the link to what is not mapped: %v, %v", is, err)
	}
	w.must(w.Rmdir(ctx, w.path("data"), false))
	unused := w.mapping(`\\files.example\data`, safepath.Path{}, DataUser, DataPassword)
	w.must(w.NewSMBGlobalMapping(ctx, unused))
	if err := w.NewSMBGlobalMapping(ctx, w.mapping(`\\files.example\data`, safepath.Path{}, DataUser, "wr0ng")); !errors.Is(err, fs.ErrPermission) || w.isMapped(DataShare) {
		t.Errorf("other credentials are not tried for a share that nobody uses: %v", err)
	}
	w.must(w.NewSMBGlobalMapping(ctx, unused))
	if all := fmt.Sprintf("%+v", w.Ledger()); strings.Contains(all, DataPassword) || strings.Contains(all, "wr0ng") || !strings.Contains(all, "[secret]") {
		t.Errorf("ledger = %s", all)
	}
}
