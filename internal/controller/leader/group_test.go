package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// apiServer keeps one Lease, as an API server does: a write that names an old version is refused.
type apiServer struct {
	mu      sync.Mutex // guards the rest
	record  resourcelock.LeaderElectionRecord
	version int
	changes int // of the holder
}

// client is one replica's way to the server, and its copy of the version.
type client struct {
	server  *apiServer
	name    string
	version int

	mu sync.Mutex // guards way
	// way returns how long a request takes to the server and its answer back. A negative time means that it is lost.
	way func() (there, back time.Duration)
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (c *client) set(way func() (there, back time.Duration)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.way = way
}

// call takes a request to the server and its answer back. A caller that gives up does not stop a request that is on its way.
func (c *client) call(ctx context.Context, do func(*apiServer) error) error {
	c.mu.Lock()
	there, back := c.way()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, RenewDeadline/2) // as controller-runtime's clients of Leases have
	defer cancel()
	answer := make(chan error, 1)
	if there >= 0 {
		time.AfterFunc(there, func() {
			c.server.mu.Lock()
			err := do(c.server)
			c.server.mu.Unlock()
			if back >= 0 {
				time.AfterFunc(back, func() { answer <- err })
			}
		})
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *client) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var record resourcelock.LeaderElectionRecord
	var version int
	if err := c.call(ctx, func(s *apiServer) error { record, version = s.record, s.version; return nil }); err != nil {
		return nil, nil, err
	}
	c.version = version
	text, err := json.Marshal(record)
	return &record, text, err
}

func (c *client) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	return apierrors.NewAlreadyExists(leases, "leader")
}

func (c *client) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	expected, next := c.version, 0
	err := c.call(ctx, func(s *apiServer) error {
		if s.version != expected {
			return apierrors.NewConflict(leases, "leader", errors.New("changed"))
		}
		if s.record.HolderIdentity != r.HolderIdentity {
			s.changes++
		}
		s.version++
		s.record, next = r, s.version
		return nil
	})
	if err == nil {
		c.version = next
	}
	return err
}

func (c *client) RecordEvent(string) {}
func (c *client) Identity() string   { return c.name }
func (c *client) Describe() string   { return c.name }

// worker is a Part. It notes who works, and takes a while to stop.
type worker struct {
	name     string
	work     *work
	stopping func() time.Duration
}

type work struct {
	mu     sync.Mutex // guards the rest
	who    map[string]bool
	terms  map[string]int
	faults []string
}

func (w *work) begin(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.who) > 0 {
		w.faults = append(w.faults, fmt.Sprintf("%s begins while %v works", name, w.who))
	}
	w.who[name] = true
	w.terms[name]++
}

func (w *work) end(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.who, name)
}

func (w *work) now() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.who {
		names = append(names, name)
	}
	return names
}

func (w *worker) Start(ctx context.Context) error {
	w.work.begin(w.name)
	<-ctx.Done()
	time.Sleep(w.stopping())
	w.work.end(w.name)
	return nil
}

func fast() (there, back time.Duration) { return time.Millisecond, time.Millisecond }

func lost() (there, back time.Duration) { return -1, -1 }

func atOnce() time.Duration { return 0 }

// replicas runs some until the test is over.
func replicas(t *testing.T, n int, stopping func() time.Duration) ([]*client, *work, func()) {
	t.Helper()
	server := &apiServer{}
	w := &work{who: map[string]bool{}, terms: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = &client{server: server, name: fmt.Sprintf("replica-%d", i), way: fast}
		g := New(Options{Lock: clients[i], Name: "test"})
		g.Add(&worker{clients[i].name, w, stopping})
		running.Go(func() {
			if err := g.Start(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return clients, w, func() { cancel(); running.Wait() }
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestNoTwoWorkAtOnceWhateverTheAPIServerDoes(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			upTo := func(d time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(random.Int64N(int64(d)))
			}
			slow := func() (there, back time.Duration) {
				switch upTo(4) {
				case 0:
					return upTo(4 * time.Second), upTo(6 * time.Second)
				case 1:
					return upTo(time.Second), -1
				case 2:
					return lost()
				}
				return fast()
			}
			clients, w, stop := replicas(t, 3, func() time.Duration { return upTo(500 * time.Millisecond) })
			for range 200 {
				for _, c := range clients {
					c.set([]func() (_, _ time.Duration){fast, slow, lost}[upTo(3)])
				}
				after(upTo(40 * time.Second))
			}
			for _, c := range clients {
				c.set(fast)
			}
			after(time.Minute)
			if len(w.now()) != 1 {
				t.Errorf("seed %d: %v lead when all is well again", seed, w.now())
			}
			stop()
			if len(w.faults) > 0 {
				t.Errorf("seed %d: %v", seed, w.faults)
			}
			if len(w.terms) != 3 {
				t.Errorf("seed %d: terms %v: the test says little", seed, w.terms)
			}
		})
	}
}

func TestATermEndsBeforeOthersMayLeadAlsoIfTheAnswerWasLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients, w, stop := replicas(t, 1, atOnce)
		defer stop()
		after(time.Second)
		// The next renewal is stored at once, and answered almost five seconds later. Then nothing gets through.
		calls := 0
		clients[0].set(func() (there, back time.Duration) {
			if calls++; calls == 1 {
				return 0, 4900 * time.Millisecond
			}
			return lost()
		})
		sent := time.Now().Add(retryPeriod) // at the latest
		for len(w.now()) > 0 {
			after(100 * time.Millisecond)
		}
		if late := time.Since(sent.Add(RenewDeadline)); late > 100*time.Millisecond {
			t.Errorf("the work went on for %v after the end of the term", late)
		}
	})
}

func TestTheLeaderThatLosesItsLeaseLeadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients, w, stop := replicas(t, 1, atOnce)
		defer stop()
		for i := range 3 {
			clients[0].set(fast)
			after(30 * time.Second)
			if len(w.now()) != 1 || w.terms["replica-0"] != i+1 {
				t.Fatalf("%v works, terms %v", w.now(), w.terms)
			}
			clients[0].set(lost)
			after(time.Minute)
			if len(w.now()) != 0 {
				t.Fatalf("%v works without a Lease", w.now())
			}
		}
	})
}

func TestALeaderThatIsToldToStopGivesUpItsLeaseAfterItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients, w, stop := replicas(t, 1, func() time.Duration { return 3 * time.Second })
		after(time.Second)
		begun := time.Now()
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		after(2900 * time.Millisecond)
		if holder := clients[0].server.record.HolderIdentity; holder != "replica-0" || len(w.now()) != 1 {
			t.Errorf("%q holds the Lease while %v works", holder, w.now())
		}
		<-stopped
		if holder := clients[0].server.record.HolderIdentity; holder != "" || time.Since(begun) > 4*time.Second {
			t.Errorf("%q holds the Lease %v later", holder, time.Since(begun))
		}
	})
}

func TestAReplicaThatDoesNotLeadStopsAtOnceBesideADeadAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients, _, stop := replicas(t, 2, atOnce)
		after(time.Second)
		for _, c := range clients {
			c.set(lost)
		}
		begun := time.Now()
		stop() // the leader's last request has a bound
		if took := time.Since(begun); took > releaseTimeout {
			t.Errorf("took %v", took)
		}
	})
}

type failing struct {
	mu     sync.Mutex // guards starts
	starts int
}

func (f *failing) Start(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts++
	return errors.New("a disk is full")
}

func TestAPartThatFailsIsStartedAgainAndEndsNothing(t *testing.T) {
	for name, lock := range map[string]resourcelock.Interface{"alone": nil, "with a Lease": &client{server: &apiServer{}, name: "r", way: fast}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				part := &failing{}
				g := New(Options{Lock: lock, Name: "test"})
				g.Add(part)
				ended := make(chan error, 1)
				go func() { ended <- g.Start(ctx) }()
				after(time.Minute)
				select {
				case err := <-ended:
					t.Fatalf("ended with %v", err)
				default:
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if part.starts < 5 {
					t.Errorf("started %d times in a minute", part.starts)
				}
			})
		})
	}
}

func TestWithoutALeaseTheReplicaLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &work{who: map[string]bool{}, terms: map[string]int{}}
		g := New(Options{})
		g.Add(&worker{"only", w, atOnce})
		ended := make(chan error, 1)
		go func() { ended <- g.Start(ctx) }()
		after(time.Hour)
		if len(w.now()) != 1 || w.terms["only"] != 1 {
			t.Errorf("%v works, terms %v", w.now(), w.terms)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

var _ resourcelock.Interface = (*client)(nil)
