package winsvc

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"
)

// scm plays the service manager to one service.
type scm struct {
	t        *testing.T
	requests chan svc.ChangeRequest
	status   chan svc.Status
	exit     chan exit
}

type exit struct {
	specific bool
	code     uint32
	err      error
}

func start(t *testing.T, o Options, run Function) scm {
	m := scm{t, make(chan svc.ChangeRequest), make(chan svc.Status), make(chan exit, 1)}
	if o.Reload == nil {
		o.Reload = func() {}
	}
	s := &service{ctx: context.Background(), options: o, run: run}
	go func() {
		specific, code := s.Execute(nil, m.requests, m.status)
		m.exit <- exit{specific, code, s.err}
	}()
	if starting := m.want(svc.StartPending); starting.Accepts != 0 || starting.WaitHint == 0 {
		t.Errorf("reported %+v", starting)
	}
	return m
}

func (m scm) next() svc.Status {
	m.t.Helper()
	select {
	case status := <-m.status:
		return status
	case <-time.After(30 * time.Second):
		m.t.Fatal("no report")
	}
	return svc.Status{}
}

func (m scm) want(state svc.State) svc.Status {
	m.t.Helper()
	status := m.next()
	if status.State != state {
		m.t.Errorf("reported state %d, want %d", status.State, state)
	}
	return status
}

func (m scm) ended() exit {
	m.t.Helper()
	for {
		select {
		case e := <-m.exit:
			return e
		case <-m.status:
		case <-time.After(30 * time.Second):
			m.t.Fatal("it does not end")
		}
	}
}

func TestAStopWaitsForTheFunction(t *testing.T) {
	for name, command := range map[string]svc.Cmd{"stop": svc.Stop, "shutdown": svc.Shutdown} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			m := start(t, Options{}, func(ctx context.Context, ready func()) error {
				ready()
				ready() // said twice, it is heard once
				<-ctx.Done()
				<-release
				return nil
			})
			if running := m.want(svc.Running); running.Accepts != svc.AcceptStop|svc.AcceptShutdown|svc.AcceptParamChange {
				t.Errorf("accepts %d", running.Accepts)
			}
			m.requests <- svc.ChangeRequest{Cmd: command}
			stopping := m.want(svc.StopPending)
			if stopping.Accepts != 0 || stopping.WaitHint == 0 {
				t.Errorf("reported %+v", stopping)
			}
			if later := m.want(svc.StopPending); later.CheckPoint <= stopping.CheckPoint {
				t.Errorf("no progress is reported: %d after %d", later.CheckPoint, stopping.CheckPoint)
			}
			m.requests <- svc.ChangeRequest{Cmd: command} // asked again, it goes on stopping
			m.want(svc.StopPending)
			close(release)
			if got := m.ended(); got != (exit{}) {
				t.Errorf("ended with %+v", got)
			}
		})
	}
}

func TestOtherRequestsDoNotStop(t *testing.T) {
	reloads := 0
	m := start(t, Options{Reload: func() { reloads++ }}, func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		return nil
	})
	m.want(svc.Running)
	for _, command := range []svc.Cmd{svc.Interrogate, svc.ParamChange, svc.Pause, svc.Continue, svc.SessionChange, 200} {
		m.requests <- svc.ChangeRequest{Cmd: command}
		m.want(svc.Running)
	}
	m.requests <- svc.ChangeRequest{Cmd: svc.Stop}
	m.want(svc.StopPending)
	m.ended()
	if reloads != 1 {
		t.Errorf("%d reloads, want that of the one ParamChange", reloads)
	}
}

func TestAServiceIsStartingUntilItSaysThatItServes(t *testing.T) {
	release := make(chan struct{})
	m := start(t, Options{}, func(ctx context.Context, ready func()) error {
		<-release
		ready()
		<-ctx.Done()
		return nil
	})
	first, second := m.want(svc.StartPending), m.want(svc.StartPending)
	if second.CheckPoint <= first.CheckPoint || second.Accepts != 0 {
		t.Errorf("reported %+v after %+v", second, first)
	}
	close(release)
	for { // a tick may come before
		if status := m.next(); status.State == svc.Running {
			break
		} else if status.State != svc.StartPending {
			t.Fatalf("reported %+v", status)
		}
	}
	m.requests <- svc.ChangeRequest{Cmd: svc.Stop}
	m.want(svc.StopPending)
	m.ended()
}

func TestAFailedRunIsAFailedService(t *testing.T) {
	for name, tt := range map[string]struct {
		code func(error) uint32
		want uint32
	}{
		"without codes":       {nil, 1},
		"a code of its own":   {func(error) uint32 { return 7 }, 7},
		"no code for a fault": {func(error) uint32 { return 0 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, Options{ExitCode: tt.code}, func(context.Context, func()) error { return errRun })
			if got := m.ended(); !got.specific || got.code != tt.want || !errors.Is(got.err, errRun) {
				t.Errorf("ended with %+v", got)
			}
		})
	}
}

func TestAFaultAtTheStopDoesNotStartTheServiceAgain(t *testing.T) {
	m := start(t, Options{}, func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		return errRun
	})
	m.want(svc.Running)
	m.requests <- svc.ChangeRequest{Cmd: svc.Stop}
	if got := m.ended(); got.code != 0 || !errors.Is(got.err, errRun) {
		t.Errorf("ended with %+v", got)
	}
}

func TestAServiceThatNoManagerStartedIsRefused(t *testing.T) {
	t.Parallel() // Wine waits ten seconds for a manager
	err := Run(context.Background(), Options{Service: true}, func(context.Context, func()) error {
		t.Error("it ran")
		return nil
	})
	if err == nil {
		t.Error("no error")
	}
}
