package winhost

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

func TestServiceIsDescribed(t *testing.T) {
	s, _, _ := newServices(t)
	got, err := s.Service(t.Context(), "Base")
	if diff := cmp.Diff(handler.ServiceInfo{DisplayName: "The Base", StartType: handler.StartAutomatic, Status: handler.ServiceRunning}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, spoil := range []func(*fakeService){
		func(s *fakeService) { s.start = 5 }, func(s *fakeService) { s.state = 8 }, func(s *fakeService) { s.start = 1 << 31 },
		func(s *fakeService) { s.stateError = failedAs("QueryServiceStatusEx", "service base", 5) },
	} {
		s, m, _ := newServices(t)
		spoil(m.services["base"])
		if got, err := s.Service(t.Context(), "base"); err == nil {
			t.Errorf("got %+v", got)
		}
	}
}

func TestStartServiceWaitsUntilItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m, _ := newServices(t)
		for range 2 { // the second time it runs
			wants(t, s.StartService(t.Context(), "alone"), nil)
			if m.services["alone"].state != running {
				t.Error("it does not run")
			}
		}
		if diff := cmp.Diff([]string{"start alone"}, m.did); diff != "" {
			t.Error(diff)
		}
		// Somebody else has started it.
		m.services["idle"].startError = failedAs("StartServiceW", "service idle", errorServiceRunning)
		(&openService{m, m.services["idle"], "idle", toQuery}).becomes(startPending, running)
		wants(t, s.StartService(t.Context(), "idle"), nil)
		// It was about to stop.
		(&openService{m, m.services["top"], "top", toQuery}).becomes(stopPending, stopped)
		wants(t, s.StartService(t.Context(), "top"), nil)
		if m.services["top"].state != running {
			t.Error("it does not run")
		}
	})
}

func TestStartServiceFails(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(s *fakeService)
		kind  error
		says  string
		takes time.Duration
	}{
		{"it is disabled", func(s *fakeService) { s.startError = failedAs("StartServiceW", "service alone", 1058) }, handler.ErrPrecondition, "code=1058", 0},
		{"what it depends on fails", func(s *fakeService) { s.startError = failedAs("StartServiceW", "service alone", 1068) }, handler.ErrPrecondition, "code=1068", 0},
		{"its account is wrong", func(s *fakeService) { s.startError = failedAs("StartServiceW", "service alone", 1069) }, fs.ErrPermission, "code=1069", 0},
		{"it may not be started", func(s *fakeService) { s.openError = failedAs("OpenServiceW", "service alone", 5) }, fs.ErrPermission, "OpenServiceW failed (target=service alone): code=5", 0},
		{"it ends at once", func(s *fakeService) { s.exit = 1067 }, handler.ErrPrecondition, "code=1067", time.Second},
		{"it takes for ever", func(s *fakeService) { s.takes = time.Hour }, context.DeadlineExceeded, "timed out waiting", serviceTime},
		{"it is paused", func(s *fakeService) {
			s.state, s.startError = uint32(handler.ServicePaused), failedAs("StartServiceW", "service alone", errorServiceRunning)
		}, handler.ErrPrecondition, "state 7", 0},
		{"its state cannot be read", func(s *fakeService) { s.stateError = failedAs("QueryServiceStatusEx", "service alone", 5) }, fs.ErrPermission, "code=5", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m, _ := newServices(t)
				test.spoil(m.services["alone"])
				began := time.Now()
				wants(t, s.StartService(t.Context(), "alone"), test.kind, "alone", test.says)
				if took := time.Since(began); took < test.takes || took > test.takes+servicePoll {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m, _ := newServices(t)
		m.services["alone"].takes, m.services["top"].takes = time.Hour, time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wants(t, s.StartService(ctx, "alone"), context.DeadlineExceeded, "alone")
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		wants(t, s.StopService(ctx, "top", true, named), context.Canceled, "top")
	})
}

func TestStopServiceStopsTheMostDistantFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m, _ := newServices(t)
		m.services["middle"].lazy = true
		for range 2 { // the second time it is stopped
			wants(t, s.StopService(t.Context(), "BASE", true, named), nil)
		}
		if diff := cmp.Diff([]string{"stop top", "stop middle", "stop base"}, m.did); diff != "" {
			t.Error(diff)
		}
		wants(t, s.StopService(t.Context(), "alone", false, named), nil)
	})
}

func TestStopServiceOfWhatIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m, _ := newServices(t)
		(&openService{m, m.services["top"], "top", toQuery}).becomes(stopPending, stopped)
		wants(t, s.StopService(t.Context(), "top", false, named), nil)
		(&openService{m, m.services["alone"], "alone", toQuery}).becomes(startPending, running)
		wants(t, s.StopService(t.Context(), "alone", false, named), nil)
		m.services["middle"].stopError = failedAs("ControlService", "service middle", errorServiceNotActive) // has just stopped
		wants(t, s.StopService(t.Context(), "middle", false, named), nil)
		if diff := cmp.Diff([]string{"stop alone"}, m.did); diff != "" {
			t.Error(diff)
		}
	})
}

// named are the services of the fake manager that depend on others.
var named = handler.Permits{Services: []string{"Middle", "TOP"}}

func TestAForcedStopReachesOnlyServicesThatTheRuleNames(t *testing.T) {
	for text, permits := range map[string]handler.Permits{
		"stop service base: a forced stop would also stop top, middle:": {},
		"would also stop top:":    {Services: []string{"base", "middle"}},
		"would also stop middle:": {Services: []string{"top", "mid", "idle"}},
	} {
		s, m, _ := newServices(t)
		wants(t, s.StopService(t.Context(), "base", true, permits), fs.ErrPermission, text, "services")
		if len(m.did) > 0 {
			t.Errorf("%s it did %v", text, m.did)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s, m, _ := newServices(t)
		wants(t, s.StopService(t.Context(), "top", true, handler.Permits{}), nil) // nothing that runs depends on it
		wants(t, s.StopService(t.Context(), "base", true, handler.Permits{Services: []string{"middle"}}), nil)
		if diff := cmp.Diff([]string{"stop top", "stop middle", "stop base"}, m.did); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStopServiceRefuses(t *testing.T) {
	tests := []struct {
		name, service string
		force         bool
		spoil         func(m *fakeManager)
		kind          error
		says          string
	}{
		{"this process", "csiproxy", true, nil, fs.ErrPermission, "serves this request"},
		{"this process in another case", "CsiProxy", true, nil, fs.ErrPermission, "serves this request"},
		{"this process without force", "csiproxy", false, nil, fs.ErrPermission, "serves this request"},
		{"this process when it is said to have stopped", "csiproxy", true, func(m *fakeManager) { m.services["csiproxy"].state = stopped }, fs.ErrPermission, ""},
		{"what this process depends on", "top", true, needsTop, fs.ErrPermission, "csiproxy"},
		{"what this process depends on from afar", "base", true, needsTop, fs.ErrPermission, "csiproxy"},
		{"the same without force", "base", false, needsTop, fs.ErrPermission, "csiproxy"},
		{"what others depend on", "base", false, nil, handler.ErrPrecondition, "top, middle depend on it"},
		{"what is not there", "nothing", true, nil, fs.ErrNotExist, "service nothing"},
		{"what has a dependent that may not be looked at", "base", true, func(m *fakeManager) { m.services["top"].openError = failedAs("OpenServiceW", "service top", 5) }, fs.ErrPermission, "code=5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, m, _ := newServices(t)
			if test.spoil != nil {
				test.spoil(m)
			}
			wants(t, s.StopService(t.Context(), handler.ServiceName(test.service), test.force, named), test.kind, test.says)
			if len(m.did) > 0 {
				t.Errorf("it did %v", m.did)
			}
		})
	}
}

func needsTop(m *fakeManager) { m.services["csiproxy"].needs = []string{"top"} }

func TestStopServiceEndsAtTheFirstThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m, _ := newServices(t)
		m.services["middle"].stopError = failedAs("ControlService", "service middle", 1052)
		wants(t, s.StopService(t.Context(), "base", true, named), handler.ErrPrecondition, "stop service base", "service middle", "code=1052")
		m.services["middle"].stopError, m.services["middle"].takes = nil, time.Hour
		wants(t, s.StopService(t.Context(), "base", true, named), context.DeadlineExceeded, "timed out waiting for service middle")
		if diff := cmp.Diff([]string{"stop top", "stop middle"}, m.did); diff != "" {
			t.Error(diff)
		}
	})
}

func TestServicesThatDependOnEachOtherAreCountedOnce(t *testing.T) {
	s, m, _ := newServices(t)
	m.services["base"].needs = []string{"top"} // a circle
	order, err := s.stopOrder(t.Context(), "base", map[string]bool{})
	if diff := cmp.Diff([]string{"top", "middle", "base"}, order); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestNoServiceIsOpenedForAnEndedContext(t *testing.T) {
	s, m, _ := newServices(t)
	_, err := s.Service(ended(t), "base")
	wants(t, err, context.Canceled)
	wants(t, s.StartService(ended(t), "alone"), context.Canceled)
	wants(t, s.StopService(ended(t), "base", true, named), context.Canceled)
	if len(m.did) > 0 {
		t.Errorf("it did %v", m.did)
	}
}

func TestBIOSSerialNumber(t *testing.T) {
	s, _, f := newServices(t)
	_, err := s.BIOSSerialNumber(t.Context())
	wants(t, err, fs.ErrNotExist)
	f.classes["CIM_BIOSElement"] = []wmi.Instance{row("bios", properties{"SerialNumber": "7C-2"}), row("older", properties{"SerialNumber": "x"})}
	if got, err := s.BIOSSerialNumber(t.Context()); err != nil || got != "7C-2" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, value := range []any{nil, missing, uint64(7)} {
		f.set("bios", "SerialNumber", value)
		if got, err := s.BIOSSerialNumber(t.Context()); err == nil {
			t.Errorf("%v: got %q", value, got)
		}
	}
	f.fails["CIM_BIOSElement"] = errors.New("lost")
	_, err = s.BIOSSerialNumber(t.Context())
	wants(t, err, f.fails["CIM_BIOSElement"], "the firmware's serial number")
	_, err = s.BIOSSerialNumber(ended(t))
	wants(t, err, context.Canceled)
}
