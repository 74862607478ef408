package winsvc

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"
)

// manager plays the service manager to one service.
type manager struct {
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

func start(t *testing.T, run func(context.Context) error) manager {
	m := manager{t, make(chan svc.ChangeRequest), make(chan svc.Status), make(chan exit, 1)}
	s := &service{ctx: context.Background(), run: run}
	go func() {
		specific, code := s.Execute(nil, m.requests, m.status)
		m.exit <- exit{specific, code, s.err}
	}()
	m.want(svc.StartPending)
	return m
}

func (m manager) next() svc.Status {
	m.t.Helper()
	select {
	case status := <-m.status:
		return status
	case <-time.After(30 * time.Second):
		m.t.Fatal("no report")
	}
	return svc.Status{}
}

func (m manager) want(state svc.State) svc.Status {
	m.t.Helper()
	status := m.next()
	if status.State != state {
		m.t.Errorf("reported state %d, want %d", status.State, state)
	}
	return status
}

func (m manager) ended() exit {
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
			m := start(t, func(ctx context.Context) error {
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
	m := start(t, func(ctx context.Context) error {
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
}

func TestAFailedRunIsAFailedService(t *testing.T) {
	m := start(t, func(context.Context) error { return errRun })
	m.want(svc.Running)
	if got := m.ended(); !got.specific || got.code == 0 || !errors.Is(got.err, errRun) {
		t.Errorf("ended with %+v", got)
	}
}

func TestAServiceThatNoManagerStartedIsRefused(t *testing.T) {
	t.Parallel() // Wine waits ten seconds for a manager
	err := Run(context.Background(), Options{Service: true}, func(context.Context) error {
		t.Error("it ran")
		return nil
	})
	if err == nil {
		t.Error("no error")
	}
}
