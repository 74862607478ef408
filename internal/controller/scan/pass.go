package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// state is what one pass leaves to the next. Only the goroutine of the Scanner has it.
type state struct {
	// epoch counts the times that everything had to be judged again. What was judged in an earlier one does not count.
	epoch int
	// revision and began are of the epoch.
	revision string
	began    time.Time
	kinds    map[string]*kindState // by resource
	written  map[address]written
}

func newState() state {
	s := state{kinds: map[string]*kindState{}, written: map[address]written{}}
	for _, k := range judgedKinds() {
		s.kinds[k.resource] = &kindState{slots: map[string]*slot{}}
	}
	return s
}

// kindState is what is known of the objects of one kind.
type kindState struct {
	epoch int // in which all of them were last listed and judged
	slots map[string]*slot
}

// pass is one look at everything.
type pass struct {
	*Scanner
	revision   string
	isFull     bool
	namespaces map[string]namespace
	// held are the namespaces of which something could not be read: their reports stay as they are. "" is the
	// objects without a namespace.
	held map[string]bool
	// holdsNamespaces is true if a kind could not be listed, so that all namespaces are held.
	holdsNamespaces bool
	failures        int
	waited          int
	put, deleted    int
}

// pass judges what exists, or what has changed, and brings the reports in line. isComplete is true if it has judged
// everything and written every report. An error means that it ended early: other policies decide, or ctx has ended.
func (s *Scanner) pass(ctx context.Context, revision string) (isComplete bool, err error) {
	start := s.options.Now()
	p := &pass{Scanner: s, revision: revision, held: map[string]bool{}}
	p.enter(start)
	s.options.Log.Info("scan begins", zap.String(logkeys.Revision, revision), zap.Bool(logkeys.Full, p.isFull))
	if err := p.judgeAll(ctx); err != nil {
		s.options.Log.Info("scan ends early", zap.String(logkeys.Revision, revision), zap.Error(err))
		return false, err
	}
	unread := p.failures
	if err := p.publish(ctx); err != nil {
		return false, err
	}
	total := p.state.sums()
	if unread == 0 {
		s.violations.Store(&violations{revision, total.violated, total.modes})
	}
	duration := s.options.Now().Sub(start)
	if isComplete = p.failures == 0; isComplete {
		s.metrics.completed(total, s.options.Now())
	}
	s.metrics.lasted(duration)
	line := s.options.Log.Info
	if !isComplete {
		line = s.options.Log.Warn
	}
	line("scan ends", zap.String(logkeys.Revision, revision), zap.Bool(logkeys.Full, p.isFull),
		zap.Bool(logkeys.Complete, isComplete), zap.Int(logkeys.Failures, p.failures), zap.Int(logkeys.Objects, total.objects),
		zap.Int32(logkeys.Denied, total.summary.Deny), zap.Int32(logkeys.Warned, total.summary.Warn),
		zap.Int32(logkeys.Audited, total.summary.Audit), zap.Int32(logkeys.Unjudged, total.summary.Error),
		zap.Int(logkeys.Written, p.put), zap.Int(logkeys.Deleted, p.deleted), zap.Duration(logkeys.Duration, duration))
	if unread == 0 {
		s.options.Completed()
	}
	return isComplete, nil
}

// enter begins a new epoch if everything has to be judged again.
func (p *pass) enter(now time.Time) {
	s := &p.state
	change, changes := p.options.NextChange(s.began)
	p.isFull = s.epoch == 0 || s.revision != p.revision || now.Sub(s.began) >= p.options.FullEvery || changes && !change.After(now)
	if p.isFull {
		s.epoch++
		s.revision, s.began = p.revision, now
	}
}

// judgeAll brings the slots of all kinds up to date. What cannot be listed is counted and held.
func (p *pass) judgeAll(ctx context.Context) error {
	found := &namespaces{}
	if err := p.lists.list(ctx, namespaceKind().path(""), acceptMetadata, found); err != nil {
		if end := p.ends(ctx, err); end != nil {
			return end
		}
		p.fail(namespaceKind(), "", err)
		p.holdsNamespaces = true
	} else {
		p.namespaces = found.found
	}
	for _, k := range judgedKinds() {
		if k.namespaced && p.namespaces == nil {
			continue // whether a judgement still holds depends on the namespace's labels
		}
		if err := p.judgeKind(ctx, k); err != nil {
			if end := p.ends(ctx, err); end != nil {
				return end
			}
			p.fail(k, "", err)
			if k.namespaced {
				p.holdsNamespaces = true
			} else {
				p.held[""] = true
			}
		}
	}
	return nil
}

// judgeKind brings the slots of a kind up to date: the first time in an epoch by judging all objects, later by
// judging those of the namespaces in which any has changed.
func (p *pass) judgeKind(ctx context.Context, k kind) error {
	known := p.state.kinds[k.resource]
	if known.epoch != p.state.epoch {
		return p.judgeWhole(ctx, k)
	}
	found := &look{kind: k}
	if err := p.lists.list(ctx, k.path(""), acceptMetadata, found); err != nil {
		return err
	}
	maps.DeleteFunc(known.slots, func(name string, _ *slot) bool { _, ok := found.seen[name]; return !ok })
	var changed []string
	var objects, all int
	for _, name := range slices.Sorted(maps.Keys(found.seen)) {
		s := found.seen[name]
		all += s.number
		if !known.slots[name].isCurrent(p.state.epoch, p.namespaces[name].labels, s.objects) {
			changed = append(changed, name)
			objects += s.number
		}
	}
	switch {
	case len(changed) == 0:
		return nil
	case !k.namespaced || 2*objects > all: // one list costs less than many
		return p.judgeWhole(ctx, k)
	}
	unread := 0 // in a row
	for _, name := range changed {
		c := &judging{ctx: ctx, pass: p, kind: k, namespace: name}
		if err := p.lists.list(ctx, k.path(name), acceptObjects, c); err != nil {
			if end := p.ends(ctx, err); end != nil {
				return end
			}
			if unread++; unread == maxUnread {
				return err
			}
			p.fail(k, name, err)
			p.held[name] = true
			continue
		}
		unread = 0
		if s := c.slots[name]; s != nil {
			known.slots[name] = s
		} else { // all of them vanished in between
			delete(known.slots, name)
		}
	}
	return nil
}

// maxUnread is how many namespaces in a row may fail before their kind is given up for this pass: each has had all its
// attempts, and the API server is in trouble.
const maxUnread = 3

// judgeWhole judges all objects of a kind.
func (p *pass) judgeWhole(ctx context.Context, k kind) error {
	c := &judging{ctx: ctx, pass: p, kind: k}
	if err := p.lists.list(ctx, k.path(""), acceptObjects, c); err != nil {
		return err
	}
	*p.state.kinds[k.resource] = kindState{epoch: p.state.epoch, slots: c.slots}
	return nil
}

// ends returns the error that ends the pass, or nil if err is about one list.
func (p *pass) ends(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("scan: %w", context.Cause(ctx))
	}
	if errors.Is(err, errSuperseded) {
		return fmt.Errorf("scan: %w", errSuperseded)
	}
	return nil
}

// fail counts and logs what makes the pass incomplete.
func (p *pass) fail(k kind, namespace string, err error) {
	p.failures++
	p.metrics.failed()
	p.options.Log.Warn("scan is incomplete; reports stay as they were",
		zap.String(logkeys.Kind, k.gvk.Kind), zap.String(logkeys.Namespace, namespace), zap.Error(err))
}
