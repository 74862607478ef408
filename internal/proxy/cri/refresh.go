package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

var errClosed = errors.New("the client of the container runtime is closed")

// question is a list that is asked for, or will be.
type question struct {
	answered chan struct{} // closed once the rest is there
	list     peer.List
	err      error
}

// spacing is the least time between two questions: whatever callers do, the runtime is asked five times a second at most. A question
// after a pause is asked at once.
const spacing = 200 * time.Millisecond

// Refresh implements peer.Containers. However many ask at once, the runtime is asked by one at a time, and not more often than
// spacing allows. An answer that was under way before may lack what the caller wants to know of, so that all who come meanwhile
// share the one after it.
func (c *Client) Refresh(ctx context.Context) (peer.List, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return peer.List{}, errClosed
	}
	q := c.next
	if q == nil {
		q = &question{answered: make(chan struct{})}
		c.next = q
		if c.running == nil && !c.pausing {
			c.start()
		}
	}
	c.mu.Unlock()
	select {
	case <-q.answered:
		return q.list, q.err
	case <-ctx.Done():
		return peer.List{}, fmt.Errorf("wait for the container runtime: %w", ctx.Err())
	}
}

// start asks the next question. It is called with mu held.
func (c *Client) start() {
	q := c.next
	c.running, c.next = q, nil
	c.asking.Go(func() {
		began := time.Now()
		q.list, q.err = c.ask()
		c.mu.Lock()
		c.running, c.pausing = nil, true
		c.mu.Unlock()
		close(q.answered)
		periodic.Sleep(c.ctx, spacing-time.Since(began))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pausing = false
		if c.next != nil {
			c.start()
		}
	})
}

func (c *Client) ask() (peer.List, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(c.ctx, c.options.Timeout)
	defer cancel()
	list, err := c.list(ctx)
	if err != nil {
		c.lists.failed.Add(1)
		c.report(err.Error(), err)
		return peer.List{}, err
	}
	list.AsOf = began
	k := &known{list: list}
	for i := range list.Candidates {
		if list.Candidates[i].Fault != "" {
			k.faults++
		}
	}
	c.known.Store(k)
	c.lists.good.Add(1)
	if list.Gap != "" {
		c.report(list.Gap, errors.New(list.Gap))
		return list, nil
	}
	c.report("answers", nil)
	return list, nil
}

// report logs what has changed since it was asked last.
func (c *Client) report(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said == what || c.closed {
		return
	}
	c.said = what
	if err != nil {
		c.options.Log.Warn("the container runtime does not tell of every container: callers in containers that are not known are named by their processes", zap.Error(err))
		return
	}
	c.options.Log.Info("the container runtime answers")
}
