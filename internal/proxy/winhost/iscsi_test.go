package winhost

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

var (
	portal  = handler.TargetPortal{Address: "10.0.0.1", Port: 3260}
	nowhere = handler.TargetPortal{Address: "10.0.0.9", Port: 3260}
)

const (
	iqnOn  = handler.IQN("iqn.2020-01.example:connected")
	iqnOff = handler.IQN("iqn.2020-01.example:not")
	iqnNo  = handler.IQN("iqn.2020-01.example:nothing")
)

// newTargets has hand-made targets: one that is connected over two connections to disks 5 and 3, and one that is not.
func newTargets(t *testing.T) (targets, *fakeWMI) {
	t.Helper()
	f := newFakeWMI(t)
	f.classes[portalClass] = []wmi.Instance{row("portal", properties{"TargetPortalAddress": portal.Address, "TargetPortalPortNumber": uint64(3260)})}
	f.related["portal>"+targetClass] = []wmi.Instance{
		row("on", properties{"NodeAddress": string(iqnOn), "IsConnected": true}),
		row("off", properties{"NodeAddress": strings.ToUpper(string(iqnOff)), "IsConnected": false}),
	}
	f.related["on>"+sessionClass] = []wmi.Instance{row("session", properties{"SessionIdentifier": "ffff-1", "IsPersistent": false})}
	f.related["on>MSFT_iSCSIConnection"] = []wmi.Instance{row("c1", properties{}), row("c2", properties{})}
	f.related["c1>MSFT_Disk"] = []wmi.Instance{row("d5", properties{"Number": uint64(5)}), row("d3", properties{"Number": uint64(3)})}
	f.related["c2>MSFT_Disk"] = []wmi.Instance{row("d5", properties{"Number": uint64(5)})}
	return targets{asked{WMI: f}}, f
}

func TestTargetPortalsAreAddedOnceAndRemoved(t *testing.T) {
	s, f := newTargets(t)
	wants(t, s.AddTargetPortal(t.Context(), portal), nil)
	f.wantCalls()
	wants(t, s.AddTargetPortal(t.Context(), nowhere), nil)
	wants(t, s.AddTargetPortal(t.Context(), handler.TargetPortal{Address: portal.Address, Port: 3261}), nil)
	wants(t, s.RemoveTargetPortal(t.Context(), portal), nil)
	f.wantCalls(
		portalClass+".New [TargetPortalAddress:10.0.0.9 TargetPortalPortNumber:3260]",
		portalClass+".New [TargetPortalAddress:10.0.0.1 TargetPortalPortNumber:3261]",
		portalClass+".Remove portal [TargetPortalAddress:10.0.0.1 TargetPortalPortNumber:3260]")
	f.says(portalClass+".New", 0xEFFF0003)
	wants(t, s.AddTargetPortal(t.Context(), nowhere), handler.ErrPrecondition, "code=4026466307", "10.0.0.9:3260")
	wants(t, s.RemoveTargetPortal(t.Context(), nowhere), fs.ErrNotExist)
}

func TestListTargetPortals(t *testing.T) {
	s, _ := newTargets(t)
	got, err := s.ListTargetPortals(t.Context())
	if diff := cmp.Diff([]handler.TargetPortal{portal}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for property, values := range map[string][]any{"TargetPortalPortNumber": {nil, "x", uint64(65536), missing}, "TargetPortalAddress": {nil, missing}} {
		for _, value := range values {
			s, f := newTargets(t)
			f.set("portal", property, value)
			if got, err := s.ListTargetPortals(t.Context()); err == nil {
				t.Errorf("%s %v: got %v", property, value, got)
			}
		}
	}
}

func TestDiscoverTargetPortal(t *testing.T) {
	s, f := newTargets(t)
	got, err := s.DiscoverTargetPortal(t.Context(), portal)
	if diff := cmp.Diff([]handler.IQN{iqnOn, handler.IQN(strings.ToUpper(string(iqnOff)))}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	f.set("off", "NodeAddress", nil)
	if got, err := s.DiscoverTargetPortal(t.Context(), portal); err == nil {
		t.Errorf("got %v", got)
	}
}

func TestConnectTarget(t *testing.T) {
	const start = targetClass + ".Connect [AuthenticationType:"
	const end = "NodeAddress:" + string(iqnOff) + " TargetPortalAddress:10.0.0.1 TargetPortalPortNumber:3260]"
	tests := []struct {
		name  string
		login handler.Login
		want  string
	}{
		{"without credentials", handler.Login{}, start + "NONE " + end},
		{"with a name alone", handler.Login{Username: "u"}, start + "NONE ChapUsername:u " + end},
		{"one way", handler.Login{Auth: handler.AuthOneWayCHAP, Username: "u", Secret: handler.NewSecret("s")}, start + "ONEWAYCHAP ChapSecret:secret(s) ChapUsername:u " + end},
		{"one way without them", handler.Login{Auth: handler.AuthOneWayCHAP}, start + "ONEWAYCHAP ChapSecret:secret() ChapUsername: " + end},
		{"both ways", handler.Login{Auth: handler.AuthMutualCHAP, Username: "u", Secret: handler.NewSecret("s")}, start + "MUTUALCHAP ChapSecret:secret(s) ChapUsername:u " + end},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, f := newTargets(t)
			wants(t, s.ConnectTarget(t.Context(), portal, iqnOn, test.login), nil) // is connected
			f.wantCalls()
			wants(t, s.ConnectTarget(t.Context(), portal, iqnOff, test.login), nil)
			f.wantCalls(test.want)
		})
	}
	s, f := newTargets(t)
	for _, faster := range []func(){
		func() { f.says(targetClass+".Connect", targetLoggedIn) },
		func() { f.fails[targetClass+".Connect"] = &wmi.Error{Op: "call", What: "x", Code: targetLoggedIn} },
	} {
		faster()
		wants(t, s.ConnectTarget(t.Context(), portal, iqnOff, handler.Login{}), nil)
	}
}

func TestConnectTargetFails(t *testing.T) {
	login := handler.Login{Auth: handler.AuthOneWayCHAP, Username: "u", Secret: handler.NewSecret(iscsiCanary)}
	tests := []struct {
		name   string
		target handler.IQN
		login  handler.Login
		spoil  func(f *fakeWMI)
		kind   error
		says   string
	}{
		{"the kind of login is none", iqnOff, handler.Login{Auth: 9}, nil, fs.ErrInvalid, "invalid authentication type authType=9"},
		{"the kind of login is less than none", iqnOff, handler.Login{Auth: -1}, nil, fs.ErrInvalid, "authType=-1"},
		{"the target is not there", iqnNo, login, nil, fs.ErrNotExist, string(iqnNo)},
		{"the secret is wrong", iqnOff, login, func(f *fakeWMI) { f.says(targetClass+".Connect", 0xEFFF0009) }, fs.ErrPermission, "code=4026466313"},
		{"the node may not", iqnOff, login, func(f *fakeWMI) { f.says(targetClass+".Connect", 0xEFFF000A) }, fs.ErrPermission, "code=4026466314"},
		{"the service does not run", iqnOff, login, func(f *fakeWMI) { f.says(targetClass+".Connect", 0xEFFF003E) }, handler.ErrPrecondition, "not running"},
		{"an answer of COM", iqnOff, login, func(f *fakeWMI) {
			f.fails[targetClass+".Connect"] = &wmi.Error{Op: "call", What: "x", Code: 0xEFFF0009}
		}, fs.ErrPermission, "code=4026466313"},
		{"it does not say whether it is connected", iqnOff, login, func(f *fakeWMI) { f.set("off", "IsConnected", nil) }, errAny, "IsConnected"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, f := newTargets(t)
			if test.spoil != nil {
				test.spoil(f)
			}
			err := s.ConnectTarget(t.Context(), portal, test.target, test.login)
			if errors.Is(test.kind, errAny) {
				test.kind = err
			}
			if err == nil {
				t.Fatal("it was done")
			}
			wants(t, err, test.kind, test.says)
			if strings.Contains(err.Error(), iscsiCanary) {
				t.Errorf("the secret is in %v", err)
			}
		})
	}
}

const iscsiCanary = "c4n4ry-chap-secret"

func TestDisconnectTargetIsForGood(t *testing.T) {
	s, f := newTargets(t)
	wants(t, s.DisconnectTarget(t.Context(), portal, iqnOff), nil)
	f.wantCalls()
	f.related["on>"+sessionClass] = append(f.related["on>"+sessionClass], row("session2", properties{"SessionIdentifier": "ffff-2", "IsPersistent": true}))
	wants(t, s.DisconnectTarget(t.Context(), portal, iqnOn), nil)
	f.wantCalls(targetClass+".Disconnect on [SessionIdentifier:ffff-1]", sessionClass+".Unregister session2", targetClass+".Disconnect on [SessionIdentifier:ffff-2]")
}

func TestDisconnectTargetFails(t *testing.T) {
	tests := map[string]struct {
		spoil func(f *fakeWMI)
		kind  error
	}{
		"there is no session": {func(f *fakeWMI) { f.related["on>"+sessionClass] = nil }, handler.ErrPrecondition},
		"a device is in use":  {func(f *fakeWMI) { f.says(targetClass+".Disconnect", 0xEFFF0040) }, handler.ErrPrecondition},
		"it cannot be unregistered": {func(f *fakeWMI) {
			f.set("session", "IsPersistent", true)
			f.says(sessionClass+".Unregister", 5)
		}, fs.ErrPermission},
		"the session has no name":            {func(f *fakeWMI) { f.set("session", "SessionIdentifier", nil) }, errAny},
		"nobody knows whether it comes back": {func(f *fakeWMI) { f.set("session", "IsPersistent", missing) }, errAny},
		"the sessions cannot be read":        {func(f *fakeWMI) { f.fails["on>"+sessionClass] = fs.ErrPermission }, fs.ErrPermission},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, f := newTargets(t)
			test.spoil(f)
			err := s.DisconnectTarget(t.Context(), portal, iqnOn)
			if errors.Is(test.kind, errAny) && err != nil {
				err = errAny
			}
			wants(t, err, test.kind)
		})
	}
	// A session that has ended meanwhile is what was wanted.
	_, f := newTargets(t)
	f.related["on>"+sessionClass] = nil
	wants(t, targets{asked{WMI: ending{f}}}.DisconnectTarget(t.Context(), portal, iqnOn), nil)
}

// ending lets the connection end after the sessions were read.
type ending struct{ *fakeWMI }

func (e ending) Associated(ctx context.Context, of wmi.Instance, a wmi.Association) ([]wmi.Instance, error) {
	found, err := e.fakeWMI.Associated(ctx, of, a)
	if a.Result == sessionClass {
		e.set("on", "IsConnected", false)
	}
	return found, err
}

func TestTargetDisks(t *testing.T) {
	s, f := newTargets(t)
	got, err := s.TargetDisks(t.Context(), portal, iqnOn)
	if diff := cmp.Diff([]uint32{3, 5}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := s.TargetDisks(t.Context(), portal, iqnOff); err != nil || len(got) != 0 {
		t.Errorf("of one that is not connected: %v, %v", got, err)
	}
	for _, number := range []any{nil, missing, "4294967296", "x"} {
		f.set("d3", "Number", number)
		if got, err := s.TargetDisks(t.Context(), portal, iqnOn); err == nil {
			t.Errorf("%v: got %v", number, got)
		}
	}
	for _, key := range []string{"c2>MSFT_Disk", "on>MSFT_iSCSIConnection", "portal>" + targetClass} {
		s, f := newTargets(t)
		f.fails[key] = errors.New("lost")
		_, err := s.TargetDisks(t.Context(), portal, iqnOn)
		wants(t, err, f.fails[key])
	}
}

func TestSetMutualCHAPSecret(t *testing.T) {
	s, f := newTargets(t)
	wants(t, s.SetMutualCHAPSecret(t.Context(), handler.NewSecret(iscsiCanary)), nil)
	f.wantCalls(sessionClass + ".SetCHAPSecret [ChapSecret:secret(" + iscsiCanary + ")]")
	f.says(sessionClass+".SetCHAPSecret", 87)
	wants(t, s.SetMutualCHAPSecret(t.Context(), handler.NewSecret(iscsiCanary)), fs.ErrInvalid, "code=87: the parameter is incorrect")
}

func TestPortalsAndTargetsThatAreNotThere(t *testing.T) {
	acts := map[string]func(s targets, ctx context.Context, p handler.TargetPortal, iqn handler.IQN) error{
		"DiscoverTargetPortal": func(s targets, ctx context.Context, p handler.TargetPortal, _ handler.IQN) error {
			_, err := s.DiscoverTargetPortal(ctx, p)
			return err
		},
		"RemoveTargetPortal": func(s targets, ctx context.Context, p handler.TargetPortal, _ handler.IQN) error {
			return s.RemoveTargetPortal(ctx, p)
		},
		"ConnectTarget": func(s targets, ctx context.Context, p handler.TargetPortal, iqn handler.IQN) error {
			return s.ConnectTarget(ctx, p, iqn, handler.Login{})
		},
		"DisconnectTarget": func(s targets, ctx context.Context, p handler.TargetPortal, iqn handler.IQN) error {
			return s.DisconnectTarget(ctx, p, iqn)
		},
		"TargetDisks": func(s targets, ctx context.Context, p handler.TargetPortal, iqn handler.IQN) error {
			_, err := s.TargetDisks(ctx, p, iqn)
			return err
		},
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			s, f := newTargets(t)
			wants(t, act(s, t.Context(), nowhere, iqnOn), fs.ErrNotExist, "10.0.0.9:3260")
			wants(t, act(s, ended(t), portal, iqnOn), context.Canceled)
			if strings.Contains(name, "Target") && !strings.HasSuffix(name, "Portal") {
				wants(t, act(s, t.Context(), portal, iqnNo), fs.ErrNotExist, string(iqnNo))
			}
			f.fails[portalClass] = errors.New("lost")
			wants(t, act(s, t.Context(), portal, iqnOn), f.fails[portalClass], "10.0.0.1:3260")
			f.wantCalls()
		})
	}
}
