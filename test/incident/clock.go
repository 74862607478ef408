package main

import (
	"context"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// The story has times of its own, so that every run leaves the same log but for ids and durations.
var day = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// pace is the time from one record to the next.
const pace = 40 * time.Millisecond

// clock stands still unless somebody moves it.
type clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

// Now returns the time of the story.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// pass moves the clock by one record.
func (c *clock) pass() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(pace)
	return c.now
}

// set moves the clock to a time of the day, as in 13:41 or 13:41:30.
func (c *clock) set(text string) error {
	layout := "15:04:05"
	if len(text) == len("15:04") {
		layout = "15:04"
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = time.Date(day.Year(), day.Month(), day.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	return nil
}

// timed is a log whose records have the times of the story.
type timed struct {
	audit.Writer
	clock *clock

	mu     sync.Mutex // guards what follows
	closed int        // connections whose record is there
	more   chan struct{}
}

func newTimed(w audit.Writer, c *clock) *timed {
	return &timed{Writer: w, clock: c, more: make(chan struct{})}
}

// Append implements audit.Writer.
func (t *timed) Append(ctx context.Context, e *audit.Event) (uint64, error) {
	at := *e
	at.Time = t.clock.pass()
	seq, err := t.Writer.Append(ctx, &at)
	if e.Type == audit.TypeConnection {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.closed++
		close(t.more)
		t.more = make(chan struct{})
	}
	return seq, err
}

// connections returns how many have ended.
func (t *timed) connections() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// await returns once so many connections have ended: a connection's record comes after its caller has gone, and the next caller waits for it.
func (t *timed) await(ctx context.Context, closed int) error {
	for {
		t.mu.Lock()
		done, more := t.closed >= closed, t.more
		t.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
		}
	}
}
