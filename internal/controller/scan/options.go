package scan

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
)

// Options are the parts of a Scanner. The zero value of a field means its default.
type Options struct {
	// Config reaches the API server. It is required. Content types and the rate of requests are the Scanner's own.
	Config *rest.Config
	// Judge judges one object. It is required; Reviews makes one.
	Judge Judge
	// Revision names the policies that decide now; "" means that there are none, and then nothing is scanned. It is
	// required.
	Revision func() string
	// NextChange returns the first instant after another at which a judgement changes by itself, such as the end of a
	// permission or the beginning of its warning. A pass begins when it has come. nil means that there is none.
	NextChange func(after time.Time) (time.Time, bool)
	// Completed is called after each pass that judged everything, from the goroutine of the Scanner. It may be nil.
	Completed func()
	// Standard is the standard kind of report that is written beside PipeReports. Default NoStandard.
	Standard Standard
	// StandardRole is the name of the ClusterRole that permits to write them. They belong to it, so that the cluster removes
	// them with it: when they are no longer wanted, the process may no longer remove them itself. "" is none.
	StandardRole string
	// Interval is the time between passes. A tenth at most is added, so that installations do not scan in step.
	// Default 10 min.
	Interval time.Duration
	// Settle is how long a new revision must stand before it is scanned: policy objects are often applied several at a
	// time. Default 2 s.
	Settle time.Duration
	// RetryAfter is the wait before a page is asked for again; it doubles with each attempt. Default 500 ms.
	RetryAfter time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Registerer takes the metrics when the Scanner starts, and gives them up when it stops: only the leader has them.
	// nil means that there are none.
	Registerer prometheus.Registerer
	// Log receives diagnostics; nil means none.
	Log *zap.Logger

	// pageSize is the number of objects in a page; tests use small ones.
	pageSize int
}

// defaultPageSize is what client-go's pager asks for: large enough that ten thousand objects are twenty requests, and
// small enough that the API server holds little for each.
const defaultPageSize = 500

func (o Options) withDefaults() (Options, error) {
	var faults []error
	if o.Config == nil {
		faults = append(faults, errors.New("option Config is missing"))
	}
	if o.Judge == nil {
		faults = append(faults, errors.New("option Judge is missing"))
	}
	if o.Revision == nil {
		faults = append(faults, errors.New("option Revision is missing"))
	}
	o.Standard = cmp.Or(o.Standard, NoStandard)
	if err := o.Standard.Check(); err != nil {
		faults = append(faults, fmt.Errorf("option Standard: %w", err))
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"Interval", &o.Interval, 10 * time.Minute},
		{"Settle", &o.Settle, 2 * time.Second},
		{"RetryAfter", &o.RetryAfter, 500 * time.Millisecond},
	} {
		switch {
		case *d.value == 0:
			*d.value = d.def
		case *d.value < 0:
			faults = append(faults, fmt.Errorf("option %s is negative", d.name))
		}
	}
	if o.NextChange == nil {
		o.NextChange = func(time.Time) (time.Time, bool) { return time.Time{}, false }
	}
	if o.Completed == nil {
		o.Completed = func() {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	o.pageSize = cmp.Or(o.pageSize, defaultPageSize)
	return o, errors.Join(faults...)
}
