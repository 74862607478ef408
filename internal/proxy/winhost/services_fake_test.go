package winhost

import (
	"strings"
	"testing"
	"time"
)

// fakeManager is a service manager: services take a while to start and to stop.
type fakeManager struct {
	t        *testing.T
	services map[string]*fakeService
	did      []string
	open     int
}

type fakeService struct {
	display    string
	start      uint32
	state      uint32
	needs      []string // the services that it depends on
	takes      time.Duration
	until      time.Time // when the pending state ends
	then       uint32    // and what it is then
	lazy       bool      // says that it runs for a while after it was told to stop
	exit       uint32
	startError error
	stopError  error
	openError  error
	stateError error
}

func newServices(t *testing.T) (services, *fakeManager, *fakeWMI) {
	t.Helper()
	m := &fakeManager{t: t, services: map[string]*fakeService{
		"base":     {display: "The Base", start: 2, state: running, takes: time.Second},
		"middle":   {start: 3, state: running, needs: []string{"base"}, takes: time.Second},
		"top":      {start: 3, state: running, needs: []string{"middle"}, takes: time.Second},
		"idle":     {start: 3, state: stopped, needs: []string{"base"}, takes: time.Second},
		"csiproxy": {start: 2, state: running},
		"alone":    {start: 4, state: stopped, takes: time.Second},
	}}
	t.Cleanup(func() {
		if m.open != 0 {
			t.Errorf("%d services were left open", m.open)
		}
	})
	f := newFakeWMI(t)
	return services{asked{WMI: f}, m, DefaultService}, m, f
}

func (m *fakeManager) Open(name string, to serviceRight) (service, error) {
	s := m.services[strings.ToLower(name)]
	if s == nil {
		return nil, failedAs("OpenServiceW", "service "+name, 1060)
	}
	if s.openError != nil {
		return nil, s.openError
	}
	m.open++
	return &openService{m, s, strings.ToLower(name), to}, nil
}

type openService struct {
	m    *fakeManager
	s    *fakeService
	name string
	to   serviceRight
}

func (o *openService) Close() error { o.m.open--; return nil }

func (o *openService) Config() (string, uint32, error) { return o.s.display, o.s.start, nil }

func (o *openService) State() (uint32, uint32, error) {
	if !o.s.until.IsZero() && !time.Now().Before(o.s.until) {
		o.s.state, o.s.until = o.s.then, time.Time{}
	}
	return o.s.state, o.s.exit, o.s.stateError
}

func (o *openService) becomes(pending, then uint32) {
	o.s.state, o.s.then, o.s.until = pending, then, time.Now().Add(o.s.takes)
}

func (o *openService) Start() error {
	if o.to != toStart {
		o.m.t.Error("started without the right to")
	}
	if o.s.startError != nil {
		return o.s.startError
	}
	o.m.did = append(o.m.did, "start "+o.name)
	if o.s.exit != 0 {
		o.becomes(startPending, stopped)
	} else {
		o.becomes(startPending, running)
	}
	return nil
}

func (o *openService) Stop() error {
	if o.to != toStop {
		o.m.t.Error("stopped without the right to")
	}
	if o.s.stopError != nil {
		return o.s.stopError
	}
	o.m.did = append(o.m.did, "stop "+o.name)
	pending := stopPending
	if o.s.lazy {
		pending = running
	}
	o.becomes(pending, stopped)
	return nil
}

func (o *openService) Dependents() ([]string, error) {
	var names []string
	for _, name := range []string{"csiproxy", "top", "middle", "base", "idle"} {
		s := o.m.services[name]
		for _, need := range s.needs {
			if need == o.name && s.state != stopped {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// failedAs is the error of a function of Windows.
func failedAs(function, object string, number uint32) error {
	return &codeError{function, object, number, win32Codes.in(number)}
}
