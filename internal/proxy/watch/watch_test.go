package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// fixture is a Watch of a machine whose pipes a test makes up.
type fixture struct {
	*Watch
	registry *prometheus.Registry
	logged   *observer.ObservedLogs

	mu       sync.Mutex // guards the fields below
	answer   error      // to the question who serves a pipe
	names    []string
	namesErr error
	servers  map[string]Foreign // who answers
	asked    []string

	stop func()
}

func (f *fixture) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fixture) verify(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answer
}

func start(t *testing.T, own func(string) bool) *fixture {
	t.Helper()
	core, logged := observer.New(zapcore.DebugLevel)
	f := &fixture{registry: prometheus.NewRegistry(), logged: logged, servers: map[string]Foreign{}}
	search := Search{
		Own: own,
		names: func() ([]string, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.names, f.namesErr
		},
		who: func(_ context.Context, name string) (Foreign, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.asked = append(f.asked, name)
			if s, ok := f.servers[name]; ok {
				return s, nil
			}
			return Foreign{}, errors.New("gone")
		},
	}
	var err error
	if f.Watch, err = New(search, f.registry, zap.New(core)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	f.stop = func() { cancel(); <-done }
	return f
}

// gauge is the value of a series, by name or name{pipe}.
func (f *fixture) gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			series := family.GetName()
			for _, label := range m.GetLabel() {
				series += "{" + label.GetValue() + "}"
			}
			if series == name {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no series %s", name)
	return 0
}

// events are the lines of an event, in short.
func (f *fixture) events(number uint32) (lines []string) {
	for _, entry := range f.logged.All() {
		fields := entry.ContextMap()
		if fields[logkeys.Event] == number {
			lines = append(lines, fmt.Sprint(entry.Level, " ", fields[logkeys.Pipe]))
		}
	}
	return lines
}

// rounds lets time pass until n more rounds are over.
func rounds(n int) {
	time.Sleep(time.Duration(n) * Interval)
	synctest.Wait()
}

func TestASquattedNameIsSaidOnceAndShownUntilItIsFree(t *testing.T) {
	for _, cause := range []error{pipe.ErrTaken, pipe.ErrLost} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, nil)
			f.Add("Other", func(context.Context) error { return nil })
			f.Add("csi-proxy-disk-v1", f.verify)
			f.Begin()
			synctest.Wait()
			if err := f.Fault(); err != nil || f.gauge(t, "pipeguard_pipe_squatted{csi-proxy-disk-v1}") != 0 || f.gauge(t, "pipeguard_pipe_squatted{Other}") != 0 {
				t.Fatalf("before: %v", err)
			}
			served := func(want ...string) {
				t.Helper()
				if diff := cmp.Diff(want, f.Served()); diff != "" {
					t.Errorf("served (-want +got):\n%s", diff)
				}
			}
			served("csi-proxy-disk-v1", "other")
			f.set(func() { f.answer = fmt.Errorf("disk: %w", cause) })
			rounds(3)
			if err := f.Fault(); !errors.Is(err, cause) || !strings.Contains(err.Error(), "csi-proxy-disk-v1") {
				t.Errorf("fault %v", err)
			}
			if f.gauge(t, "pipeguard_pipe_squatted{csi-proxy-disk-v1}") != 1 || f.gauge(t, "pipeguard_pipe_squatted{Other}") != 0 {
				t.Error("the series do not say which")
			}
			f.set(func() { f.answer = context.DeadlineExceeded }) // a flood hides nothing
			rounds(2)
			if f.Fault() == nil || f.gauge(t, "pipeguard_pipe_squatted{csi-proxy-disk-v1}") != 1 {
				t.Error("a question without an answer has hidden it")
			}
			served("other")
			f.set(func() { f.answer = nil })
			rounds(1)
			if err := f.Fault(); err != nil || f.gauge(t, "pipeguard_pipe_squatted{csi-proxy-disk-v1}") != 0 {
				t.Errorf("after: %v", err)
			}
			served("csi-proxy-disk-v1", "other")
			if diff := cmp.Diff([]string{"error csi-proxy-disk-v1", "warn csi-proxy-disk-v1"}, f.events(eventSquatted)); diff != "" {
				t.Error(diff)
			}
			f.stop()
		})
	}
}

func TestWhatIsNotFoundOutIsNoSquatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil)
		f.Add("csi-proxy-disk-v1", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		f.Begin()
		rounds(4)
		if err := f.Fault(); err != nil || f.gauge(t, "pipeguard_pipe_squatted{csi-proxy-disk-v1}") != 0 || len(f.events(eventSquatted)) != 0 {
			t.Errorf("fault %v, events %v", err, f.events(eventSquatted))
		}
		if n := f.logged.FilterMessageSnippet("could not be found out").Len(); n != 1 {
			t.Errorf("it is said %d times", n)
		}
		f.stop()
	})
}

func TestNothingIsLookedAtBeforeThePipesAreOpenAndAfterTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil)
		asked := 0
		f.names = []string{"csi-proxy-disk-v1"}
		f.Add("csi-proxy-volume-v1", func(context.Context) error { asked++; return pipe.ErrTaken })
		rounds(3)
		f.set(func() {
			if asked != 0 || len(f.asked) != 0 {
				t.Error("a pipe was asked before all were open")
			}
		})
		f.stop()
		f.Begin()
		rounds(3)
		if asked != 0 || f.Fault() != nil {
			t.Error("a pipe was asked after the stop")
		}
	})
	synctest.Test(t, func(t *testing.T) { // the listener is closed while it is asked
		f := start(t, nil)
		f.Add("csi-proxy-volume-v1", func(ctx context.Context) error { <-ctx.Done(); return pipe.ErrTaken })
		f.Begin()
		synctest.Wait()
		f.stop()
		if err := f.Fault(); err != nil {
			t.Error(err)
		}
	})
}

func TestUnguardedPipesAreReportedByNameAndProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, func(name string) bool { return name == "csi-proxy-upstream-x" })
		f.Add("csi-proxy-volume-v1", func(context.Context) error { return nil })
		old := Foreign{Pipe: "csi-proxy-disk-v1", PID: 17, Program: `C:\old\csi-proxy.exe`}
		f.servers["csi-proxy-disk-v1"] = old
		f.servers["CSI-Proxy-Disk-V1 "] = Foreign{Pipe: "CSI-Proxy-Disk-V1 ", Doubt: "not opened"}
		f.names = []string{"csi-proxy-disk-v1", "CSI-PROXY-volume-V1", "csi-proxy-upstream-x", "docker_engine", "CSI-Proxy-Disk-V1 ", "csi-proxy-gone-v1"}
		f.Begin()
		synctest.Wait()
		if n := f.gauge(t, "pipeguard_pipes_unguarded"); n != 2 {
			t.Errorf("%v pipes", n)
		}
		if err := f.Fault(); err != nil {
			t.Errorf("it stops the node from being ready: %v", err)
		}
		f.set(func() {
			if diff := cmp.Diff([]string{"CSI-Proxy-Disk-V1 ", "csi-proxy-disk-v1", "csi-proxy-gone-v1"}, f.asked); diff != "" {
				t.Error(diff)
			}
		})
		lines := f.logged.FilterField(zap.String(logkeys.Path, old.Program)).FilterField(zap.Uint32(logkeys.PID, old.PID)).FilterField(zap.Uint32(logkeys.Event, eventUnguarded))
		if lines.Len() != 1 {
			t.Errorf("the program is named in %d lines", lines.Len())
		}
		rounds(3)
		if diff := cmp.Diff([]string{"warn CSI-Proxy-Disk-V1 ", "warn csi-proxy-disk-v1"}, f.events(eventUnguarded)); diff != "" {
			t.Errorf("it is said again: %s", diff)
		}
		f.set(func() { f.namesErr = errors.New("no list") })
		rounds(1)
		if n := f.gauge(t, "pipeguard_pipes_unguarded"); n != 2 {
			t.Errorf("%v pipes when nobody could look", n)
		}
		f.set(func() { f.names, f.namesErr = nil, nil })
		rounds(1)
		if n := f.gauge(t, "pipeguard_pipes_unguarded"); n != 0 || f.logged.FilterMessageSnippet("is gone").Len() != 2 {
			t.Errorf("%v pipes after they were gone", n)
		}
		f.stop()
	})
}

func TestNamesThatPeopleWouldTakeForCSIProxys(t *testing.T) {
	for name, want := range map[string]bool{
		"csi-proxy-disk-v1": true, "CSI-PROXY-DISK-V1": true, "csi-proxy-disk-v1 ": true, " csi-proxy-disk-v1": true, "csi_proxy_disk_v1": true, "csiproxy": true,
		"csi.proxy.disk": true, `csi-proxy\disk-v1`: true, "csi-proxy-disk-v9": true, "csi-\u00adproxy-x": true,
		"": false, "docker_engine": false, "my-csi-proxy-disk-v1": false, "csi-prox": false, "upstream-csi-proxy-disk-v1": false,
	} {
		if got := looksAlike(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

func TestASearchIsBounded(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("csi-proxy-%d", i), "csi-proxy-0")
	}
	s := Search{names: func() ([]string, error) { return names, nil }, who: func(_ context.Context, name string) (Foreign, error) { return Foreign{Pipe: name}, nil }}
	found, err := s.Foreign(t.Context())
	if err != nil || len(found) != maxForeign || found[0].Pipe != "csi-proxy-0" || found[1].Pipe != "csi-proxy-1" {
		t.Errorf("%d found, %v", len(found), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.who = func(ctx context.Context, _ string) (Foreign, error) { return Foreign{}, ctx.Err() }
	if found, err := s.Foreign(ctx); err == nil {
		t.Errorf("%d found by nobody's wish", len(found))
	}
}
