package leader

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// watchedLock knows how old the last successful renewal is. client-go's elector counts from when the answer came, which
// with a slow API server can be later than other replicas count from: two would lead at once. What they compare is the
// record, so its RenewTime is the beginning: the elector can write one record twice, with seconds in between, and other
// replicas cannot tell the second from the first.
type watchedLock struct {
	resourcelock.Interface

	written atomic.Bool // a renewal was sent, whatever came of it

	mu      sync.Mutex // guards the rest
	renewed time.Time  // RenewTime of the last record that was stored
	timer   *time.Timer
}

// Create implements resourcelock.Interface.
func (l *watchedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renew(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update implements resourcelock.Interface.
func (l *watchedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renew(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *watchedLock) renew(r resourcelock.LeaderElectionRecord, write func() error) error {
	l.written.Store(true)
	if err := write(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = r.RenewTime.Time          // by the clock of this process, monotonic reading included
	if l.timer != nil && l.timer.Stop() { // a term that was over remains over
		l.timer.Reset(time.Until(l.renewed.Add(RenewDeadline)))
	}
	return nil
}

// watch calls expired once, when the last renewal is RenewDeadline old. The function that it returns ends the
// watch.
func (l *watchedLock) watch(expired func()) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(time.Until(l.renewed.Add(RenewDeadline)), expired)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.timer.Stop()
	}
}

// release gives up the Lease if this replica holds it, so that another one need not wait until it expires. It is done after
// the parts have stopped. A Lease that was changed in between is not touched: the API server refuses an old version.
func release(ctx context.Context, lock resourcelock.Interface, log *zap.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err == nil && record.HolderIdentity != lock.Identity() {
		return
	}
	if err == nil {
		now := metav1.Now()
		err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	}
	if err != nil {
		log.Info("the Lease was not given up; it expires", zap.Error(err))
	}
}
