package proxy

import (
	"errors"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// frameRate bounds how many frames of HTTP/2 a connection carries beside its requests. Each is work, and some wait in memory for a peer
// that does not read: settings, resets, window updates, priorities, continuations, empty data and unknown types. A request that
// arrives whole earns more than a client needs for it; one that is reset at once earns nothing.
var frameRate = acl.Rate{Most: framesBurst, PerSecond: framesPerSecond}

// errFrames ends a connection that has sent too many.
var errFrames = errors.New("more frames than requests need: resets, settings, window updates, priorities or empty ones")

// earnMessage is what a message of a forwarded call earns, in either direction: its frames, and updates of windows for them.
func (c *conn) earnMessage(bytes int) { c.earn(framesPerRequest + bytes/smallData) }

// earn allows a connection more frames.
func (c *conn) earn(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames.Take(-float64(n))
}
