package proxy

import (
	"errors"
	"time"
)

// frameBudget bounds how many frames of HTTP/2 a connection carries beside its requests. Each is work, and some wait in memory for a peer
// that does not read: settings, resets, window updates, priorities, continuations, empty data and what nobody knows. A request that
// arrives whole earns more than a client needs for it; one that is reset at once earns nothing.
type frameBudget struct {
	left float64
	at   time.Time
}

// errFrames ends a connection that has sent too many.
var errFrames = errors.New("more frames than requests need: resets, settings, window updates, priorities or empty ones")

// spend takes n frames that have arrived, and says whether they were allowed.
func (f *frameBudget) spend(n int, now time.Time) bool {
	if f.at.IsZero() {
		f.left, f.at = framesBurst, now
	}
	f.left = min(framesBurst, f.left+now.Sub(f.at).Seconds()*framesPerSecond) - float64(n)
	f.at = now
	return f.left >= 0
}

func (f *frameBudget) earn(n int) { f.left = min(framesBurst, f.left+float64(n)) }

// earnMessage is what a message of a forwarded call earns, in either direction: its frames, and updates of windows for them.
func (c *conn) earnMessage(bytes int) { c.earn(framesPerRequest + bytes/smallData) }

// earn allows a connection more frames.
func (c *conn) earn(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames.earn(n)
}
