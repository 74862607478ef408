package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// Numbers under which the Windows event log shows what was found.
const (
	eventSquatted  = 121
	eventUnguarded = 122
)

// Interval is how often pipes are checked. A check costs a connection to each pipe, which no caller waits for.
const Interval = 30 * time.Second

// verifyWithin bounds the question to one pipe. A pipe that is being flooded may take that long to accept it.
const verifyWithin = 5 * time.Second

// Watch checks the pipes of one process.
type Watch struct {
	search    Search
	log       *zap.Logger
	squatted  *prometheus.GaugeVec
	unguarded prometheus.Gauge
	begin     chan struct{}
	once      sync.Once

	mu     sync.Mutex        // guards the fields below
	pipes  map[string]served // by their names in lower case
	faults map[string]error  // of pipes whose names lead elsewhere
	mute   map[string]bool   // pipes that could not be asked, and of which that was said

	found map[string]Foreign // used by Run alone
}

// served is a pipe that is checked.
type served struct {
	name   string
	verify func(context.Context) error
}

// New returns a Watch of no pipes. Search.Own need not have the names that are added.
func New(s Search, r prometheus.Registerer, log *zap.Logger) (*Watch, error) {
	w := &Watch{
		search: s, log: log, begin: make(chan struct{}),
		pipes: map[string]served{}, faults: map[string]error{}, mute: map[string]bool{}, found: map[string]Foreign{},
		squatted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_pipe_squatted", Help: "1 while the name of a served pipe leads to another process, or to none.",
		}, []string{"pipe"}),
		unguarded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pipeguard_pipes_unguarded", Help: "Pipes with names of CSI Proxy that this process does not serve.",
		}),
	}
	known := s.Own
	w.search.Own = func(name string) bool { return w.has(name) || known != nil && known(name) }
	return w, errors.Join(r.Register(w.squatted), r.Register(w.unguarded))
}

// Add adds a pipe to those that are checked. verify is that of its listener.
func (w *Watch) Add(name string, verify func(context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pipes[strings.ToLower(name)] = served{name, verify}
	w.squatted.WithLabelValues(name).Set(0)
}

// Begin says that all pipes have been added. Until then nothing is looked at.
func (w *Watch) Begin() { w.once.Do(func() { close(w.begin) }) }

// Run looks every Interval until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-w.begin:
	}
	look := func() {
		w.verify(ctx)
		w.look(ctx)
	}
	look()
	periodic.Run(ctx, Interval, look)
}

// Fault returns an error while the name of a pipe leads elsewhere.
func (w *Watch) Fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.faults)) {
		errs = append(errs, w.faults[name])
	}
	return errors.Join(errs...)
}

// Served returns the names of the pipes, in lower case and sorted, but for those that lead elsewhere. It is not nil.
func (w *Watch) Served() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, 0, len(w.pipes))
	for key, p := range w.pipes {
		if w.faults[p.name] == nil {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

// has says whether a name, whose case does not count, is one of the pipes.
func (w *Watch) has(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.pipes[strings.ToLower(name)]
	return ok
}

func (w *Watch) verify(ctx context.Context) {
	w.mu.Lock()
	pipes := maps.Clone(w.pipes)
	w.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(pipes)) {
		p := pipes[key]
		asking, cancel := context.WithTimeout(ctx, verifyWithin)
		err := p.verify(asking)
		cancel()
		if ctx.Err() != nil { // the pipes are being closed
			return
		}
		w.note(p.name, err)
	}
}

// note records and logs a change. A pipe that could not be asked changes nothing: a flood must not be taken for a squatter, nor
// hide one that was found.
func (w *Watch) note(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log.With(zap.String(logkeys.Pipe, name))
	before := w.faults[name]
	switch {
	case errors.Is(err, pipe.ErrTaken), errors.Is(err, pipe.ErrLost):
		w.faults[name] = fmt.Errorf("pipe %s: %w", name, err)
		w.squatted.WithLabelValues(name).Set(1)
		delete(w.mute, name)
		if before == nil || before.Error() != w.faults[name].Error() {
			log.Error("the name of a pipe that is served here leads elsewhere: callers may be answered by another process",
				zap.Uint32(logkeys.Event, eventSquatted), zap.Error(err))
		}
	case errors.Is(err, net.ErrClosed): // the proxy stops
	case err != nil:
		if !w.mute[name] {
			log.Warn("whether the name of a pipe still leads here could not be found out", zap.Error(err))
		}
		w.mute[name] = true
	default:
		delete(w.faults, name)
		delete(w.mute, name)
		w.squatted.WithLabelValues(name).Set(0)
		if before != nil {
			log.Warn("the name of a pipe leads here again", zap.Uint32(logkeys.Event, eventSquatted))
		}
	}
}

// look finds pipes of unknown servers. One that was found is not opened again while it is there, unless its server could not be identified.
func (w *Watch) look(ctx context.Context) {
	names, err := w.search.list()
	if err != nil {
		w.log.Warn("pipes could not be looked through", zap.Error(err))
		return
	}
	now := map[string]Foreign{}
	for _, name := range names {
		f, known := w.found[name]
		if !known || f.PID == 0 && f.Doubt != "" {
			if f, err = w.search.ask(ctx, name); err != nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		now[name] = f
		if !known || f != w.found[name] {
			w.log.Warn("a pipe of CSI Proxy's name is not served by this proxy: calls on it are neither judged nor recorded",
				zap.Uint32(logkeys.Event, eventUnguarded), zap.String(logkeys.Pipe, name), zap.Uint32(logkeys.PID, f.PID),
				zap.String(logkeys.Path, f.Program), zap.String(logkeys.Note, f.Doubt))
		}
	}
	for name := range w.found {
		if _, ok := now[name]; !ok {
			w.log.Info("a pipe of CSI Proxy's name that this proxy did not serve is gone", zap.String(logkeys.Pipe, name))
		}
	}
	w.found = now
	w.unguarded.Set(float64(len(now)))
}
