package fakehost

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func chain(o *Options) {
	running := func(name handler.ServiceName, on ...handler.ServiceName) Service {
		return Service{Name: name, StartType: handler.StartManual, Status: handler.ServiceRunning, DependsOn: on}
	}
	stopped := func(name handler.ServiceName, kind handler.StartType, on ...handler.ServiceName) Service {
		return Service{Name: name, StartType: kind, Status: handler.ServiceStopped, DependsOn: on}
	}
	o.Services = []Service{
		running("base"), running("middle", "BASE"), running("top", "middle"), running("other", "base"),
		running("ping", "pong"), running("pong", "ping"),
		stopped("off", handler.StartDisabled), stopped("needsoff", handler.StartManual, "off"),
		stopped("low", handler.StartManual), stopped("high", handler.StartManual, "low", "base"),
		stopped("orphan", handler.StartManual, "missing"),
		stopped("round", handler.StartManual, "robin"), stopped("robin", handler.StartManual, "round"),
	}
}

// everything names all services of the chain.
var everything = handler.Permits{Services: []string{"top", "middle", "OTHER", "ping", "pong"}}

func TestServicesRefuse(t *testing.T) {
	tests := []struct {
		name string
		do   func(w world) error
		want error
	}{
		{"starting an unknown service", func(w world) error { return w.StartService(t.Context(), "none") }, fs.ErrNotExist},
		{"starting a disabled service", func(w world) error { return w.StartService(t.Context(), "off") }, handler.ErrPrecondition},
		{"starting a service that needs a disabled one", func(w world) error { return w.StartService(t.Context(), "needsoff") }, handler.ErrPrecondition},
		{"starting a service that needs an unknown one", func(w world) error { return w.StartService(t.Context(), "orphan") }, fs.ErrNotExist},
		{"starting services that need each other", func(w world) error { return w.StartService(t.Context(), "round") }, handler.ErrPrecondition},
		{"stopping an unknown service", func(w world) error { return w.StopService(t.Context(), "none", true, everything) }, fs.ErrNotExist},
		{"stopping services that no rule names", func(w world) error {
			return w.StopService(t.Context(), "base", true, handler.Permits{Services: []string{"top", "other"}})
		}, fs.ErrPermission},
		{"stopping a service that others need", func(w world) error { return w.StopService(t.Context(), "base", false, everything) }, handler.ErrPrecondition},
		{"asking for an unknown service", func(w world) error { _, err := w.Service(t.Context(), "none"); return err }, fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, chain)
			if err := tt.do(w); !errors.Is(err, tt.want) {
				t.Fatalf("error = %v, want %v", err, tt.want)
			}
			if e := w.Ledger()[0]; e.Changed || e.Services != nil {
				t.Errorf("ledger = %+v", e)
			}
		})
	}
}

func TestServicesStartAndStopInOrder(t *testing.T) {
	tests := []struct {
		name string
		do   func(w world) error
		want []string
	}{
		{"a service that runs", func(w world) error { return w.StartService(t.Context(), "BASE") }, nil},
		{"a service after what it needs", func(w world) error { return w.StartService(t.Context(), "high") }, []string{"low", "high"}},
		{"a service that has stopped", func(w world) error { return w.StopService(t.Context(), "low", false, everything) }, nil},
		{"a service that nothing needs", func(w world) error { return w.StopService(t.Context(), "Top", false, everything) }, []string{"top"}},
		{"dependents before what they need", func(w world) error { return w.StopService(t.Context(), "base", true, everything) }, []string{"top", "middle", "other", "base"}},
		{"services that need each other", func(w world) error { return w.StopService(t.Context(), "ping", true, everything) }, []string{"pong", "ping"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, chain)
			w.must(tt.do(w))
			e := w.Ledger()[0]
			if diff := cmp.Diff(tt.want, e.Services); diff != "" || e.Changed != (tt.want != nil) {
				t.Errorf("changed %v, services (-want +got):\n%s", e.Changed, diff)
			}
		})
	}
}

func TestServiceReportsItsState(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.StartService(t.Context(), "msiscsi"))
	got, err := w.Service(t.Context(), "MSISCSI")
	w.must(err)
	want := handler.ServiceInfo{DisplayName: "Microsoft iSCSI Initiator Service", StartType: handler.StartManual, Status: handler.ServiceRunning}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	if serial, err := w.BIOSSerialNumber(t.Context()); serial == "" || err != nil {
		t.Errorf("serial number = %q, %v", serial, err)
	}
}
