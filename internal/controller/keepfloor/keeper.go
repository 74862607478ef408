package keepfloor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Mode says whether there is a floor.
type Mode string

// Modes of the floor.
const (
	// Off removes it.
	Off Mode = "Off"
	// Always keeps it beside the webhook.
	Always Mode = "Always"
	// Only keeps it in place of the webhook for objects.
	Only Mode = "Only"
)

// IsKept says that there is a floor.
func (m Mode) IsKept() bool { return m == Always || m == Only }

const (
	// look is how often the floor is compared with what it should be without a reason.
	look = time.Minute
	// quiet is how long to wait after a change before another look: kubectl apply writes one object after the other.
	quiet = 300 * time.Millisecond
)

// Content is what a floor is made of.
type Content struct {
	// Policies and Revision are those that decide.
	Policies admission.Policies
	Revision string
	// Attempt tells contents apart.
	Attempt string
}

// Events takes what is reported of an object.
type Events interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Options of a Keeper.
type Options struct {
	// Objects are those of the floor in the cluster.
	Objects *Objects
	// Mode says whether there is to be one.
	Mode Mode
	// Name is that of the floor.
	Name string
	// Labels are for its objects.
	Labels map[string]string
	// Source returns what decides, and false as long as nothing does.
	Source func() (Content, bool)
	// Removable says, with Off, that the floor may go: the API server asks the webhook instead. Nil always does.
	Removable func() bool
	// Tell is called when the Result has changed. It may be nil.
	Tell func()
	// Events are reported here; nil reports none.
	Events Events
	// Metrics count; needed.
	Metrics *Metrics
	// Log receives diagnostics. Default none.
	Log *zap.Logger
}

// Result is what became of the floor.
type Result struct {
	// Attempt is that of the Content that it is about; empty if nothing was attempted yet.
	Attempt string
	// Err is why the floor is not that of the Content; if that is floor.ErrTooLarge, or the API server's refusal to take it, it permits nothing.
	Err error
	// LeftOut are the names of policies with a subject that the floor cannot say, as in floor.Floor.
	LeftOut []string
}

// Keeper keeps the floor. It runs on the leader.
type Keeper struct {
	o       Options
	changed chan struct{}
	result  atomic.Pointer[Result]

	once  sync.Once
	first chan struct{} // closed after the first attempt

	// Of Start's goroutine, in this term:
	written string // the attempt that was written
	untaken string // the attempt whose floor the API server did not take
	refusal error  // what it said
}

// New returns a Keeper, or what is wrong with the options.
func New(o Options) (*Keeper, error) {
	switch {
	case o.Objects == nil || o.Source == nil || o.Metrics == nil:
		return nil, errors.New("keep the floor: objects, a source and metrics are needed")
	case o.Mode != Off && !o.Mode.IsKept():
		return nil, fmt.Errorf("keep the floor: mode %q: want Off, Always or Only", o.Mode)
	case o.Name == "":
		return nil, errors.New("keep the floor: it needs a name")
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Removable == nil {
		o.Removable = func() bool { return true }
	}
	if o.Tell == nil {
		o.Tell = func() {}
	}
	return &Keeper{o: o, changed: make(chan struct{}, 1), first: make(chan struct{})}, nil
}

// Changed says that Source would return something else than before. It does not wait.
func (k *Keeper) Changed() { periodic.Signal(k.changed) }

// Result returns what became of the floor at the last attempt of this term, and false before that.
func (k *Keeper) Result() (Result, bool) {
	if r := k.result.Load(); r != nil {
		return *r, true
	}
	return Result{}, false
}

// Attempted is closed after the first attempt of this process to bring the floor up to date, whether or not it succeeded.
func (k *Keeper) Attempted() <-chan struct{} { return k.first }

// Start keeps the floor until ctx is done. It can be called again after that.
func (k *Keeper) Start(ctx context.Context) error {
	defer k.forget()
	k.written, k.untaken = "", ""
	var group sync.WaitGroup
	defer group.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if k.o.Mode.IsKept() {
		group.Go(func() {
			k.o.Objects.watch(ctx, k.Changed, func(err error) {
				k.o.Log.Warn("the floor is not watched: what others change is put back within a minute", zap.Error(err))
			})
		})
	}
	for {
		k.keep(ctx)
		if !periodic.Wait(ctx, look, k.changed) || !periodic.Sleep(ctx, quiet) {
			return nil
		}
	}
}

// forget ends what is told with the leader's term.
func (k *Keeper) forget() {
	k.result.Store(nil)
	k.o.Metrics.clear()
}

func (k *Keeper) keep(ctx context.Context) {
	content, ok := k.o.Source()
	if !ok {
		return // a floor of an earlier process stands
	}
	next, fault := &Result{Attempt: content.Attempt}, "the floor is not what the policies say"
	switch {
	case k.o.Mode.IsKept():
		next.LeftOut, next.Err = k.write(ctx, content)
	case k.o.Removable():
		next.Err, fault = k.remove(ctx), "the floor is to go, and was not removed"
	}
	if ctx.Err() != nil {
		return // what was cut off did not fail
	}
	k.o.Metrics.seen(k.o.Mode, next.Err)
	k.once.Do(func() { close(k.first) })
	before := k.result.Load()
	if before != nil && before.Attempt == next.Attempt && text(before.Err) == text(next.Err) {
		return
	}
	if next.Err != nil {
		k.o.Log.Error(fault, zap.Error(next.Err))
	}
	if len(next.LeftOut) > 0 {
		k.o.Log.Warn("subjects are too large for the floor, which refuses what they permit", zap.Strings(logkeys.Name, next.LeftOut))
	}
	k.result.Store(next)
	k.o.Tell()
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// write brings the floor up to date, and returns what it leaves out. Policies that cannot be said, or that the API server does not take, are replaced by a floor that permits
// nothing: an older one would go on permitting what they no longer do.
func (k *Keeper) write(ctx context.Context, c Content) (leftOut []string, err error) {
	owner, err := k.o.Objects.owner(ctx)
	if err != nil {
		return nil, err
	}
	o := floor.Options{Name: k.o.Name, Policies: c.Policies, Revision: c.Revision, Labels: k.o.Labels}
	made, err := floor.New(o)
	if err == nil && k.untaken == c.Attempt {
		err = k.refusal
	} else if err == nil {
		err = k.put(ctx, made, owner, c)
	}
	switch {
	case err == nil:
		return made.LeftOut, nil
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		k.untaken, k.refusal = c.Attempt, err
	case !errors.Is(err, floor.ErrTooLarge):
		return nil, err
	}
	closed, fault := floor.Closed(o)
	if fault == nil {
		fault = k.put(ctx, closed, owner, c)
	}
	return nil, errors.Join(err, fault)
}

func (k *Keeper) put(ctx context.Context, f *floor.Floor, owner []metav1.OwnerReference, c Content) error {
	for _, object := range f.Objects() {
		object.SetOwnerReferences(owner)
		what, err := k.o.Objects.put(ctx, object)
		if err != nil {
			return err
		}
		k.report(object, what, c)
	}
	k.written = c.Attempt
	return nil
}

// report tells of an object that was written. If the same content was written before in this term, it was somebody else who changed it.
func (k *Keeper) report(object floor.Object, what change, c Content) {
	if what == unchanged {
		return
	}
	fields := []zap.Field{zap.String(logkeys.Kind, object.GetObjectKind().GroupVersionKind().Kind), zap.String(logkeys.Name, object.GetName()), zap.String(logkeys.Revision, c.Revision)}
	if k.written != c.Attempt {
		k.o.Log.Info("floor written", fields...)
		return
	}
	k.o.Metrics.repaired(what)
	k.o.Log.Warn("the floor was "+string(what)+" by somebody else, and is put back", fields...)
	if k.o.Events != nil {
		k.o.Events.Eventf(object, nil, corev1.EventTypeWarning, "FloorRestored", "Restore", "this part of the floor was %s by somebody else: it has been put back", string(what))
	}
}

func (k *Keeper) remove(ctx context.Context) error {
	for _, object := range floor.Empty(k.o.Name) {
		removed, err := k.o.Objects.remove(ctx, object, k.o.Labels)
		if err != nil {
			return err
		}
		if removed {
			k.o.Log.Info("floor removed", zap.String(logkeys.Kind, object.GetObjectKind().GroupVersionKind().Kind), zap.String(logkeys.Name, object.GetName()))
		}
	}
	return nil
}
