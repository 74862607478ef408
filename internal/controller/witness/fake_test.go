package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

// memory is a Memory that forgets with the process.
type memory struct {
	mu      sync.Mutex
	all     map[string]Entry
	writes  int
	faults  []error             // of the next reads
	between func(origin string) // what others do before a write
}

func (m *memory) Pinned(ctx context.Context, origin string) (string, error) {
	e, err := m.read(ctx, origin)
	return e.Pinned, err
}

func (m *memory) Begin(ctx context.Context, origin string) (Turn, error) {
	e, err := m.read(ctx, origin)
	return &memoryTurn{m, origin, e}, err
}

func (m *memory) read(_ context.Context, origin string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults) > 0 {
		err := m.faults[0]
		m.faults = m.faults[1:]
		return Entry{}, err
	}
	return m.all[origin], nil
}

// memoryTurn is a Turn of a memory.
type memoryTurn struct {
	m      *memory
	origin string
	before Entry
}

func (t *memoryTurn) Entry() Entry { return t.before }
func (t *memoryTurn) End()         {}

func (t *memoryTurn) Write(_ context.Context, e Entry) error {
	m := t.m
	if m.between != nil {
		m.between(t.origin)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.all[t.origin]; now.Pinned != t.before.Pinned || !bytes.Equal(now.Checkpoint, t.before.Checkpoint) {
		return evidence.ErrChanged
	}
	m.writes++
	m.all[t.origin] = e
	return nil
}

// told is an EventRecorder.
type told struct {
	mu   sync.Mutex
	said []string
}

func (e *told) Eventf(about, _ runtime.Object, kind, reason, action, note string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	o, _ := about.(*corev1.ObjectReference)
	e.said = append(e.said, fmt.Sprintf("%s %s %s %s %s: ", o.Kind, o.Name, kind, reason, action)+fmt.Sprintf(note, args...))
}

// place is a witness of one replica, with all that belongs to it.
type place struct {
	*Handler
	key      *evidence.Key
	given    map[string]evidence.Keys
	reported map[string]string
	memory   *memory
	events   *told
	logs     *observer.ObservedLogs
	server   *httptest.Server
	ahead    atomic.Int64 // of the true time, a time.Duration
}

// passes lets time pass for the witness.
func (p *place) passes(d time.Duration) { p.ahead.Add(int64(d)) }

// newPlace makes a witness that trusts what it is given, and what nodes report if that is not nil.
func newPlace(t *testing.T, reported map[string]string) *place {
	t.Helper()
	return (&place{
		key: witnesstest.NewKey(t, "example.com/witness"), given: map[string]evidence.Keys{}, reported: reported, memory: &memory{all: map[string]Entry{}},
	}).replica(t)
}

// replica is another one with the same keys and memory.
func (p *place) replica(t *testing.T) *place {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	out := &place{key: p.key, given: p.given, reported: p.reported, memory: p.memory, events: &told{}, logs: logs}
	o := Options{
		Key: func() (*evidence.Key, error) {
			if out.key == nil {
				return nil, errNoKey
			}
			return out.key, nil
		},
		Given:  func(origin string) evidence.Keys { return out.given[origin] },
		Memory: p.memory, Events: out.events, Registerer: prometheus.NewRegistry(), Log: zap.New(core),
		Now: func() time.Time { return time.Now().Add(time.Duration(out.ahead.Load())) },
	}
	if p.reported != nil {
		o.Reported = func(_ context.Context, origin string) (string, error) {
			if key, ok := out.reported[origin]; ok {
				return key, nil
			}
			return "", nil
		}
	}
	var err error
	if out.Handler, err = New(o); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/witness"+evidence.AddCheckpointPath, out.Handler)
	out.server = httptest.NewServer(mux)
	t.Cleanup(out.server.Close)
	return out
}

// gives has the operator name a node's key.
func (p *place) gives(t *testing.T, n *witnesstest.Node) {
	t.Helper()
	p.given[n.Origin()] = keysOf(t, n.Key.LogKey())
}

func keysOf(t *testing.T, lines ...string) evidence.Keys {
	t.Helper()
	keys, err := evidence.ParseKeys(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (p *place) client(t *testing.T) *evidence.Client {
	t.Helper()
	return witnesstest.Client(t, p.server.URL+"/witness", p.key, nil)
}

// post asks by hand.
func (p *place) post(t *testing.T, body string) int {
	t.Helper()
	r, err := http.Post(p.server.URL+"/witness/add-checkpoint", "text/plain", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode
}

func value(c prometheus.Counter) int {
	var m dto.Metric
	_ = c.Write(&m) // counters have no errors
	return int(m.GetCounter().GetValue())
}

// refusals are the reasons that were counted.
func (p *place) refusals() map[reason]int {
	out := map[reason]int{}
	for _, r := range allReasons() {
		if n := value(p.metrics.refused.WithLabelValues(string(r))); n > 0 {
			out[r] = n
		}
	}
	return out
}

// cosignatures are those that were counted, of logs known and new.
func (p *place) cosignatures() (known, first int) {
	return value(p.metrics.cosigned.WithLabelValues("known")), value(p.metrics.cosigned.WithLabelValues("new"))
}

// lines are the log lines with a message.
func (p *place) lines(message string) []observer.LoggedEntry {
	return p.logs.FilterMessage(message).All()
}

var errDown = errors.New("the API server is gone")
