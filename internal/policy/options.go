package policy

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/patience"
)

// DefaultEntrypoint is the document that an evaluation asks for.
const DefaultEntrypoint = "data.pipeguard.admission.decision"

// Options configure an Engine. The zero value of a field means its default.
type Options struct {
	// Entrypoint is the document asked for: {"allowed": bool, "findings": [Finding…]}. Default DefaultEntrypoint.
	Entrypoint string
	// Selector names what many decisions follow from alone, which are then made once. Nil means that each is evaluated.
	Selector *Selector
	// Remember is how many decisions are remembered, about, for inputs that are the same in all fields that modules read. Default none. A hundred take 50 KB as a rule, and
	// 800 KB at most.
	Remember int
	// Timeout bounds the processor time of one evaluation, that of the thread on which it runs. By the clock, an evaluation and the wait for a slot
	// before it may each take 20 times as long: the clock also runs while a starved process does not, each time-out refuses a request, and
	// clients wait for seconds. Default 250 ms: an evaluation takes well under one. OPA looks at it between expressions, so a single
	// builtin call may overrun it.
	Timeout time.Duration
	// ThreadTime returns the processor time that the calling thread has used so far, for any thread to read until release. Default: what the system says,
	// and on Windows the time by the clock.
	ThreadTime func() (used func() time.Duration, release func())
	// MaxConcurrent bounds the evaluations at one time. Evaluation is pure computation, so more than a few for each processor
	// only lengthens all of them. What they make has bounds of its own: see budget. Default 4 for each processor.
	MaxConcurrent int
	// MaxInputBytes bounds an input: the bytes of its text, and 16 for each value. Default 4 MiB: the API server takes
	// objects of up to 3 MiB, and the extracted input repeats some of their text.
	MaxInputBytes int
	// Limits bound the modules and their data.
	Limits Limits
	// Checks are invariants that must hold before modules are activated.
	Checks []Check
	// BaseTested says that Modules.Base passed its tests and checks elsewhere, as the built-in policy did when it was
	// made: they are not run again. What was added to it is tested in any case.
	BaseTested bool
	// Trial says that this engine only tries whether modules could decide: modules that ran out of time are then not tried
	// again for a while, whatever the reason was.
	Trial bool
	// TestTimeout bounds all tests and checks of one activation together, by the clock and by processor time, whichever is later; an activation
	// is abandoned after twice that time. By the clock alone it takes 20 times as long at most.
	// Default 30 s.
	TestTimeout time.Duration
	// WatchPoll is how often Watch looks at the directory without being told. Default 10 s.
	WatchPoll time.Duration
	// WatchSettle is how long what is watched must stay the same before it counts. Default patience.Quiet: an editor or the
	// kubelet changes several names in a row, and a file may be read while it is being written.
	WatchSettle time.Duration
	// WatchRead is how long reading the directory may take before Watch says so. Default patience.Usual.
	WatchRead time.Duration
	// Log receives diagnostics. Default none.
	Log *zap.Logger
}

// Limits bound a set of modules. OPA bounds none of this itself.
type Limits struct {
	// Files bounds the number of modules: each costs parsing and compiling before the rest is looked at. Default 256.
	Files int
	// FileBytes bounds one module. Default 256 KiB, a quarter of what a ConfigMap can hold.
	FileBytes int
	// TotalBytes bounds all modules together; compiling takes a few hundred times that much memory. Default 2 MiB.
	TotalBytes int
	// DataBytes bounds the data as JSON. Default 4 MiB: a thousand PipePolicies with twenty subjects each. It takes some
	// twenty times that in memory, twice while other policies are activated.
	DataBytes int
}

func (l Limits) withDefaults() Limits {
	l.Files = cmp.Or(l.Files, 256)
	l.FileBytes = cmp.Or(l.FileBytes, 256<<10)
	l.TotalBytes = cmp.Or(l.TotalBytes, 2<<20)
	l.DataBytes = cmp.Or(l.DataBytes, 4<<20)
	return l
}

// work returns some that has not begun.
func (o *Options) work() *work { return &work{threadTime: o.ThreadTime} }

func (o Options) withDefaults() (Options, error) {
	o.Entrypoint = cmp.Or(o.Entrypoint, DefaultEntrypoint)
	o.Timeout = cmp.Or(o.Timeout, 250*time.Millisecond)
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 4*runtime.GOMAXPROCS(0))
	o.MaxInputBytes = cmp.Or(o.MaxInputBytes, 4<<20)
	o.TestTimeout = cmp.Or(o.TestTimeout, 30*time.Second)
	o.WatchPoll = cmp.Or(o.WatchPoll, 10*time.Second)
	o.WatchSettle = cmp.Or(o.WatchSettle, patience.Quiet)
	o.WatchRead = cmp.Or(o.WatchRead, patience.Usual)
	o.Limits = o.Limits.withDefaults()
	if o.ThreadTime == nil {
		o.ThreadTime = threadTime
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())

	var faults []error
	if _, err := entrypointRef(o.Entrypoint); err != nil {
		faults = append(faults, err)
	}
	for _, bound := range []struct {
		name  string
		value int64
	}{
		{"Timeout", int64(o.Timeout)},
		{"Remember", int64(o.Remember)},
		{"MaxConcurrent", int64(o.MaxConcurrent)},
		{"MaxInputBytes", int64(o.MaxInputBytes)},
		{"TestTimeout", int64(o.TestTimeout)},
		{"WatchPoll", int64(o.WatchPoll)},
		{"WatchSettle", int64(o.WatchSettle)},
		{"WatchRead", int64(o.WatchRead)},
		{"Limits.Files", int64(o.Limits.Files)},
		{"Limits.FileBytes", int64(o.Limits.FileBytes)},
		{"Limits.TotalBytes", int64(o.Limits.TotalBytes)},
		{"Limits.DataBytes", int64(o.Limits.DataBytes)},
	} {
		if bound.value < 0 {
			faults = append(faults, fmt.Errorf("option %s is negative", bound.name))
		}
	}
	for i, c := range o.Checks {
		if !c.complete() {
			faults = append(faults, fmt.Errorf("option Checks[%d] (%q) needs a name and a Want", i, c.Name))
		}
	}
	return o, errors.Join(faults...)
}

// entrypointRef refuses anything but a plain document below data: the entry point becomes a query, and a query that
// could call or iterate would be a policy of its own.
func entrypointRef(s string) (ast.Ref, error) {
	ref, err := ast.ParseRef(s)
	if err != nil {
		return nil, fmt.Errorf("option Entrypoint %q: %w", s, err)
	}
	if len(ref) < 3 || !ref[0].Equal(ast.DefaultRootDocument) || !ref.IsGround() {
		return nil, fmt.Errorf("option Entrypoint %q: want a document in a package, as in %s", s, DefaultEntrypoint)
	}
	for _, t := range ref[1:] {
		if _, ok := t.Value.(ast.String); !ok {
			return nil, fmt.Errorf("option Entrypoint %q: want names only, as in %s", s, DefaultEntrypoint)
		}
	}
	return ref, nil
}
