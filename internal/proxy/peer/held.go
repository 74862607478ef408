package peer

import (
	"errors"
	"sync"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// errEnded means that the process that opened the connection runs no more. What still holds the
// connection's other end is another process, of which nothing is known.
var errEnded = errors.New("the process has ended")

// errReleased is the answer to a question that comes after Close.
var errReleased = errors.New("the process is no longer held")

// held is a caller whose process is held open.
type held struct {
	identity caller.Caller

	// mu keeps Close from happening while Alive asks: a closed handle's number may by then be
	// another handle's, and the answer would be about another process.
	mu      sync.RWMutex
	process process // nil once closed
}

func (h *held) Identity() caller.Caller { return h.identity }

func (h *held) Alive() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.process == nil {
		return errReleased
	}
	return h.process.Alive()
}

func (h *held) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process == nil {
		return nil
	}
	process := h.process
	h.process = nil
	return process.Close()
}
