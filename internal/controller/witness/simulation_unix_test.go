//go:build !windows

package witness

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

// simulation is a cluster whose nodes ask two replicas of the witness, as real ones do: each once a minute, through any replica.
type simulation struct {
	server   *api
	key      *evidence.Key
	replicas []http.Handler
	logs     []*witnesstest.Simulated
	clients  []*evidence.Client
	longest  time.Duration // that a node waited
	mu       sync.Mutex    // guards longest
}

// apiDelay is how long the API server takes for a read or a write.
const apiDelay = 5 * time.Millisecond

func simulate(t *testing.T, nodes int) *simulation {
	t.Helper()
	s := &simulation{server: newAPI(), key: witnesstest.NewKey(t, "example.com/pipeguard-witness")}
	s.server.delay = apiDelay
	records := witnesstest.NewRecords(t, 4096)
	known := map[string]evidence.Keys{}
	for i := range nodes {
		log := witnesstest.NewSimulated(t, fmt.Sprintf("aks-windows-%06d", i), records)
		known[log.Key().Name()] = keysOf(t, log.Key().LogKey())
		s.logs = append(s.logs, log)
		s.clients = append(s.clients, witnesstest.Client(t, "http://witness", s.key, &http.Client{Transport: s}))
	}
	for range 2 {
		memory := s.server.memory()
		memory.rounds.every = betweenRounds
		h, err := New(Options{
			Key: func() (*evidence.Key, error) { return s.key, nil }, Given: func(origin string) evidence.Keys { return known[origin] },
			Memory: memory, Registerer: prometheus.NewRegistry(), Log: zap.NewNop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		s.replicas = append(s.replicas, h)
	}
	return s
}

// RoundTrip asks any replica.
func (s *simulation) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.replicas[rand.IntN(len(s.replicas))].ServeHTTP(w, r)
	return w.Result(), nil
}

// minute lets each node ask once, and returns the CPU time that all of it took. What nodes sign is made before.
func (s *simulation) minute(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	var copies []evidence.Copy
	for i, log := range s.logs {
		copies = append(copies, log.Grow(rand.IntN(20)+1, began.Add(time.Minute*time.Duration(i)/time.Duration(len(s.logs)))))
	}
	before := cpu(t)
	var running sync.WaitGroup
	for i, c := range copies {
		running.Go(func() {
			time.Sleep(time.Minute * time.Duration(i) / time.Duration(len(s.logs)))
			asked := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // as long as a node waits
			defer cancel()
			if err := s.clients[i].Send(ctx, c); err != nil {
				t.Errorf("%s: %v", c.Origin, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.longest = max(s.longest, time.Since(asked))
		})
	}
	running.Wait()
	took := cpu(t) - before
	time.Sleep(time.Until(began.Add(time.Minute)))
	return took
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// largest is the size of the largest ConfigMap that logs share, in bytes.
func (s *simulation) largest() (size int) {
	for _, name := range ShardNames() {
		size = max(size, len(s.server.get(name).BinaryData[keyLines]))
	}
	return size
}

// nodeCounts are those that PIPEGUARD_NODES lists, else few: 300 nodes keep both replicas writing all the time.
func nodeCounts(t *testing.T) (counts []int) {
	t.Helper()
	for text := range strings.SplitSeq(cmp.Or(os.Getenv("PIPEGUARD_NODES"), "10,300"), ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
	}
	return counts
}

// However many nodes there are, a replica has no more than one round a second, which writes one object.
func TestTwoReplicasWriteTwoObjectsASecond(t *testing.T) {
	for _, nodes := range nodeCounts(t) {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, nodes)
				s.minute(t) // each log is new
				if own, shared := s.server.writes(); own != nodes || shared != 0 {
					t.Errorf("%d ConfigMaps were made for %d logs, and %d written", own, nodes, shared)
				}
				s.minute(t) // and then gets a line
				s.server.reset()
				began := time.Now()
				took := s.minute(t)
				seconds := time.Since(began).Seconds()
				own, shared := s.server.writes()
				if own != 0 || shared == 0 || float64(shared) > 2*seconds+2 {
					t.Errorf("%d writes of single logs, %d of shared ones in %.0f s", own, shared, seconds)
				}
				if s.longest > maxAsking {
					t.Errorf("a node waited %s", s.longest)
				}
				t.Logf("%d nodes: %.2f writes a second, of %.1f KB together; %.1f reads; the longest wait %s; %s of CPU by request, the node's included; the largest ConfigMap has %.1f KB",
					nodes, float64(shared)/seconds, float64(s.server.bytes)/seconds/1e3, float64(s.server.reads)/seconds, s.longest.Round(time.Millisecond),
					(took / time.Duration(nodes)).Round(time.Microsecond), float64(s.largest())/1e3)
			})
		})
	}
}

// reset begins to count anew.
func (a *api) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads, a.bytes, a.written = 0, 0, nil
}
