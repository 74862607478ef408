package winhost

import (
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// install makes services of this binary, each of which depends on the one before.
func install(t *testing.T, names ...string) {
	t.Helper()
	m, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Disconnect() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		config := mgr.Config{DisplayName: "Test of " + name, StartType: mgr.StartManual}
		if i > 0 {
			config.Dependencies = names[i-1 : i]
		}
		s, err := m.CreateService(name, self, config, "service", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = s.Control(svc.Stop)
			if err := s.Delete(); err != nil {
				t.Error(err)
			}
			_ = s.Close()
		})
	}
}

func TestTheServiceManagerOfThisHost(t *testing.T) {
	install(t, "PipeguardTestA", "PipeguardTestB")
	s := services{manager: controlManager{}, own: "PipeguardTestOwn"}
	is := func(name handler.ServiceName, want handler.ServiceStatus) {
		t.Helper()
		info, err := s.Service(t.Context(), name)
		if err != nil || info != (handler.ServiceInfo{DisplayName: "Test of " + string(name), StartType: handler.StartManual, Status: want}) {
			t.Errorf("%+v, %v", info, err)
		}
	}
	is("PipeguardTestA", handler.ServiceStopped)
	if !tellsDependents(t) { // then it starts none either
		wants(t, s.StartService(t.Context(), "PipeguardTestA"), nil)
	}
	for range 2 { // the second time it runs
		wants(t, s.StartService(t.Context(), "PipeguardTestB"), nil)
		is("PipeguardTestB", handler.ServiceRunning)
		is("PipeguardTestA", handler.ServiceRunning) // it was needed
	}
	if tellsDependents(t) {
		wants(t, s.StopService(t.Context(), "PipeguardTestA", false, handler.Permits{Services: []string{"PipeguardTestB"}}), handler.ErrPrecondition, "PipeguardTestB")
		s.own = "pipeguardTESTb"
		wants(t, s.StopService(t.Context(), "PipeguardTestA", true, handler.Permits{Services: []string{"PipeguardTestB"}}), fs.ErrPermission) // B depends on it
	} else {
		wants(t, s.StopService(t.Context(), "PipeguardTestB", false, handler.Permits{Services: []string{"PipeguardTestB"}}), nil)
		wants(t, s.StartService(t.Context(), "PipeguardTestB"), nil)
	}
	s.own = "pipeguardTESTb"
	wants(t, s.StopService(t.Context(), "PipeguardTestB", true, handler.Permits{Services: []string{"PipeguardTestB"}}), fs.ErrPermission)
	is("PipeguardTestB", handler.ServiceRunning)
	s.own = DefaultService
	for range 2 { // the second time it is stopped
		if !tellsDependents(t) {
			wants(t, s.StopService(t.Context(), "PipeguardTestB", true, handler.Permits{Services: []string{"PipeguardTestB"}}), nil)
		}
		wants(t, s.StopService(t.Context(), "PipeguardTestA", true, handler.Permits{Services: []string{"PipeguardTestB"}}), nil)
		is("PipeguardTestA", handler.ServiceStopped)
		is("PipeguardTestB", handler.ServiceStopped)
	}
}

// tellsDependents says whether this service manager keeps account of them. Wine's does not.
func tellsDependents(t *testing.T) bool {
	t.Helper()
	m, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Disconnect() }()
	a, err := m.OpenService("PipeguardTestA")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	names, err := a.ListDependentServices(svc.AnyActivity)
	if err != nil {
		t.Fatal(err)
	}
	return len(names) > 0
}

func TestAServiceThatIsNotThere(t *testing.T) {
	s := services{manager: controlManager{}, own: DefaultService}
	_, err := s.Service(t.Context(), "PipeguardTestNothing")
	wants(t, err, fs.ErrNotExist, "OpenServiceW failed (target=service PipeguardTestNothing): code=1060")
	wants(t, s.StartService(t.Context(), "PipeguardTestNothing"), fs.ErrNotExist)
	wants(t, s.StopService(t.Context(), "PipeguardTestNothing", true, handler.Permits{Services: []string{"PipeguardTestB"}}), fs.ErrNotExist)
}
