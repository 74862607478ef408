package cri

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

func names(list peer.List) string {
	var all []string
	for _, c := range list.Candidates {
		if c.Fault == "" {
			all = append(all, c.Pod.Name)
		}
	}
	return strings.Join(all, " ")
}

func TestRefreshAsksTheRuntime(t *testing.T) {
	c := serve(t, onePod())
	if got := c.Known(); len(got.Candidates) != 0 || !got.AsOf.IsZero() {
		t.Errorf("known before anything was asked: %v", got)
	}
	if s := c.Status(); !s.Listed.IsZero() {
		t.Errorf("listed before anything was asked: %+v", s)
	}
	list, err := c.Refresh(t.Context())
	if err != nil || names(list) != "csi-a" || names(c.Known()) != "csi-a" {
		t.Fatalf("got %v (known %v), %v", list, c.Known(), err)
	}
	if s := c.Status(); s.Containers != 1 || s.Faults != 1 || s.Listed.IsZero() {
		t.Errorf("status %+v", s)
	}
}

func TestRefreshKeepsWhatIsKnownOverFailures(t *testing.T) {
	tests := []struct {
		name   string
		change func(*fakeRuntime)
		want   string
	}{
		{"the runtime refuses", func(f *fakeRuntime) { f.err = status.Error(codes.Internal, "broken") }, "broken"},
		{"the runtime lists without end", func(f *fakeRuntime) {
			big := strings.Repeat("x", maxMessage)
			f.containers = []*runtimeapi.Container{{Id: id("a"), Labels: map[string]string{"x": big}}}
		}, "larger than max"},
		{"the runtime does not answer", func(f *fakeRuntime) { f.hold = make(chan struct{}) }, "DeadlineExceeded"}, // the rest says which end noticed first
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := onePod()
				c := serve(t, f)
				if _, err := c.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				f.change(func() { test.change(f) })
				if list, err := c.Refresh(t.Context()); err == nil || len(list.Candidates) != 0 || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, %v; want an error that says %q", list, err, test.want)
				}
				if names(c.Known()) != "csi-a" {
					t.Errorf("known %v", c.Known())
				}
			})
		})
	}
}

func TestRefreshEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onePod()
		f.hold = make(chan struct{})
		c := serve(t, f)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Refresh(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if names(c.Known()) != "" {
			t.Error("something is known")
		}
		close(f.hold)
		synctest.Wait()
		if names(c.Known()) != "csi-a" {
			t.Error("the answer that nobody waited for is lost")
		}
	})
}

// A list under way cannot know of a container that was made after it was asked for.
func TestRefreshIsSharedByThoseWhoComeBeforeItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onePod()
		f.hold = make(chan struct{})
		c := serve(t, f)
		var early, late sync.WaitGroup
		early.Go(func() {
			if list, err := c.Refresh(t.Context()); err != nil || names(list) != "csi-a" {
				t.Errorf("the first got %v, %v", list, err)
			}
		})
		synctest.Wait()
		f.change(func() {
			s, b := pod("2", "b")
			f.containers, f.sandboxes = append(f.containers[:1:1], b), append(f.sandboxes[:1:1], s)
		})
		for range 100 {
			late.Go(func() {
				if list, err := c.Refresh(t.Context()); err != nil || names(list) != "csi-a csi-b" {
					t.Errorf("a later one got %v, %v", list, err)
				}
			})
		}
		synctest.Wait()
		close(f.hold)
		early.Wait()
		late.Wait()
		if got := f.asked(); got != 2 {
			t.Errorf("the runtime was asked %d times", got)
		}
	})
}

func TestRuntimeThatIsAwayIsAnError(t *testing.T) {
	away := errors.New("nobody listens")
	c, err := New(Options{Dial: func(context.Context) (net.Conn, error) { return nil, away }})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := c.Refresh(t.Context()); err == nil || len(list.Candidates) != 0 || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("got %v, %v", list, err)
	}
	if len(c.Known().Candidates) != 0 || !c.Status().Listed.IsZero() {
		t.Error("something is known")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Refresh(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func run(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
}

func TestRunFollowsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onePod()
		c := serve(t, f, func(o *Options) { o.Poll = time.Hour })
		run(t, c)
		if names(c.Known()) != "csi-a" {
			t.Fatalf("at the start: %v", c.Known())
		}
		f.change(func() { f.containers, f.sandboxes = nil, nil })
		for range 50 { // a crowd of them costs few questions
			f.events <- &runtimeapi.ContainerEventResponse{ContainerId: id("f")}
		}
		time.Sleep(time.Second)
		if len(c.Known().Candidates) != 0 {
			t.Errorf("after the events: %v", c.Known())
		}
		if got := f.asked(); got > 4 {
			t.Errorf("the runtime was asked %d times", got)
		}
	})
}

func TestRunAsksAgainAfterTheStreamBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onePod()
		c := serve(t, f, func(o *Options) { o.Poll = time.Hour })
		run(t, c)
		f.change(func() {
			f.containers, f.sandboxes = nil, nil // and nobody tells of it
			close(f.events)
			f.events = make(chan *runtimeapi.ContainerEventResponse)
		})
		time.Sleep(2 * reconnect)
		if len(c.Known().Candidates) != 0 {
			t.Errorf("after the break: %v", c.Known())
		}
		f.change(func() {
			if f.streams != 2 || c.lists.breaks.Load() != 1 {
				t.Errorf("%d streams, %d breaks", f.streams, c.lists.breaks.Load())
			}
		})
	})
}

func TestRunPollsWhereThereAreNoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onePod()
		f.noEvents = true
		c := serve(t, f)
		run(t, c)
		f.change(func() { f.containers, f.sandboxes = nil, nil })
		time.Sleep(defaultPoll + reconnect)
		if len(c.Known().Candidates) != 0 {
			t.Errorf("after the poll: %v", c.Known())
		}
		time.Sleep(10 * defaultPoll)
		if got := f.asked(); got > 14 {
			t.Errorf("the runtime was asked %d times in eleven polls", got)
		}
	})
}

func TestRunPollsBesideEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onePod()
		c := serve(t, f)
		run(t, c)
		f.change(func() { f.containers, f.sandboxes = nil, nil })
		time.Sleep(defaultPoll + time.Second)
		if len(c.Known().Candidates) != 0 {
			t.Errorf("an event that never came is missed for good: %v", c.Known())
		}
	})
}

func TestAListOutlivesTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onePod()
		c := serve(t, f)
		run(t, c)
		f.change(func() { f.err = status.Error(codes.Internal, "broken") })
		listed := c.Status().Listed
		time.Sleep(5 * defaultPoll)
		if got := c.Status().Listed; !got.Equal(listed) {
			t.Errorf("listed at %v by failing answers, want %v", got, listed)
		}
		if names(c.Known()) != "csi-a" {
			t.Error("what was known is forgotten")
		}
	})
}

func TestNewRefusesToAskNobody(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("a client of nothing")
	}
}

func TestRegisterShowsTheState(t *testing.T) {
	c := serve(t, onePod())
	r := prometheus.NewPedanticRegistry()
	if err := c.Register(r); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	if got["pipeguard_runtime_listed_timestamp_seconds"] == 0 {
		t.Error("it does not say since when")
	}
	delete(got, "pipeguard_runtime_listed_timestamp_seconds")
	want := map[string]float64{
		"pipeguard_runtime_containers": 1, "pipeguard_runtime_faults": 1, "pipeguard_runtime_events_total": 0, "pipeguard_runtime_event_breaks_total": 0,
		"pipeguard_runtime_lists_total good": 1, "pipeguard_runtime_lists_total failed": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
