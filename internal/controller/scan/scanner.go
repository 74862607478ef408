package scan

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/internal/version"
)

// Scanner judges what exists, at the beginning, from time to time, and when the policies change. It is a part of
// the leader.
type Scanner struct {
	options    Options
	lists      *lister
	own        *publisher
	standard   *standardPublisher // nil if there is none
	metrics    *metrics
	triggered  chan struct{}
	violations atomic.Pointer[violations]

	// Of the goroutine that is in Start:
	began time.Time // the last pass
}

// violations are the objects without permission for their pipes, and the pods of subjects in their other mode, by policy, as judged by one revision.
type violations struct {
	revision string
	violated map[string]int32
	modes    map[string]map[admission.OtherMode]int32
}

// Rate of requests to the API server. A pass over ten thousand pods makes about thirty, one after the other.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

// New returns a Scanner, or every fault of its options.
func New(o Options) (*Scanner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("scanner: %w", err)
	}
	client, err := newClient(o.Config)
	if err != nil {
		return nil, fmt.Errorf("scanner: %w", err)
	}
	s := &Scanner{
		options:   o,
		triggered: make(chan struct{}, 1),
	}
	s.lists = s.newLister(client, func() prometheus.Counter { return s.metrics.errors })
	s.own = &publisher{store: &store{client, ownForm()}, lists: s.lists}
	if o.Standard != NoStandard {
		lists := s.newLister(client, func() prometheus.Counter { return s.metrics.standardErrors })
		s.standard = &standardPublisher{publisher: publisher{store: &store{client, standardForm(o.Standard)}, lists: lists}, role: o.StandardRole}
	}
	s.forget()
	return s, nil
}

// newLister returns a lister whose failed attempts a counter of the metrics counts.
func (s *Scanner) newLister(client rest.Interface, errors func() prometheus.Counter) *lister {
	return &lister{
		client: client, pageSize: s.options.pageSize, retryAfter: s.options.RetryAfter,
		failed: func(path string, err error) {
			errors().Inc()
			s.options.Log.Info("a list of the scan is tried again", zap.String(logkeys.Path, path), zap.Error(err))
		},
	}
}

// forget has the Scanner know nothing of what it found before.
func (s *Scanner) forget() {
	s.metrics = newMetrics(s.standard != nil)
	s.own.written = map[address]written{}
	if s.standard != nil {
		s.standard.written, s.standard.owners, s.standard.state = map[address]written{}, nil, ""
	}
}

// newClient speaks JSON to any path.
func newClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // Status, in which errors are told
	c := rest.CopyConfig(config)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = "pipeguard-scan/" + version.Number() // the API server takes the first word as the reports' field manager
	c.QPS, c.Burst, c.RateLimiter = requestsPerSecond, requestsAtOnce, nil
	c.Timeout = 0 // each request has its own
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

// Trigger asks for a pass soon; it does not wait. Call it after each new revision, and whenever the labels of
// namespaces or anything else that judgements rest on has changed.
func (s *Scanner) Trigger() {
	periodic.Signal(s.triggered)
}

// Violations returns how many of the existing objects have a pipe that the PipePolicy governs without permission,
// whether they would be refused or only recorded. It is
// false until everything was judged by the policies that decide now.
func (s *Scanner) Violations(policy string) (int32, bool) {
	v, known := s.found()
	return v.violated[policy], known
}

// OtherModes returns how many pods have containers that would be subjects of the PipePolicy in their other mode, and have no permission in theirs. It is
// false as Violations is. The caller does not change the map.
func (s *Scanner) OtherModes(policy string) (map[admission.OtherMode]int32, bool) {
	v, known := s.found()
	return v.modes[policy], known
}

func (s *Scanner) found() (violations, bool) {
	v := s.violations.Load()
	if v == nil || v.revision != s.options.Revision() {
		return violations{}, false
	}
	return *v, true
}

const (
	// withoutPolicy is how soon the Scanner asks again whether there are policies.
	withoutPolicy = 5 * time.Second
	// incompleteAfter is the wait after the first of several incomplete passes; it doubles with each, up to the interval.
	incompleteAfter = time.Minute
)

// Start scans until ctx ends, one pass at a time. It can be called again after that, and then knows nothing of what it
// found before: another replica may have scanned and written reports in between.
func (s *Scanner) Start(ctx context.Context) error {
	s.forget()
	defer s.violations.Store(nil)
	undo, err := s.metrics.register(s.options.Registerer)
	if err != nil {
		return err
	}
	defer undo()
	var incomplete time.Duration
	for {
		var next time.Duration
		revision := s.options.Revision()
		if revision == "" {
			next = withoutPolicy
		} else {
			isComplete, err := s.pass(ctx, revision)
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, errSuperseded):
				next = s.options.Settle
			case isComplete:
				incomplete, next = 0, s.untilNext()
			default:
				incomplete = min(max(incompleteAfter, 2*incomplete), s.options.Interval)
				next = incomplete
			}
		}
		if !s.wait(ctx, next) {
			return nil
		}
	}
}

// untilNext is the wait after a complete pass.
func (s *Scanner) untilNext() time.Duration {
	next := wait.Jitter(s.options.Interval, 0.1)
	if change, ok := s.options.NextChange(s.began); ok {
		// A second more: a permission that ends at an instant has ended after it.
		next = min(next, max(change.Sub(s.options.Now()), 0)+time.Second)
	}
	return next
}

// wait returns after d, or Settle after a pass was asked for. It returns false once ctx is done.
func (s *Scanner) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-s.triggered:
	}
	if !periodic.Sleep(ctx, s.options.Settle) {
		return false
	}
	select { // what was asked for meanwhile is served as well
	case <-s.triggered:
	default:
	}
	return true
}
