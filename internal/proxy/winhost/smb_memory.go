package winhost

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// memory keeps a state for as long as Windows runs, so that a proxy that is started again still knows with which credentials
// its predecessor mapped shares. It must not outlive Windows, and only administrators may be able to read it.
type memory interface {
	// Load returns nil if nothing is kept.
	Load() ([]byte, error)
	Store(state []byte) error
}

// made is what is remembered of a mapping: a digest of its credentials, who asked for it, and when.
type made struct {
	Sum [sha256.Size]byte `json:"sum"`
	By  string            `json:"by"`
	At  time.Time         `json:"at"`
}

// remembered is the form in which credentials are kept.
type remembered struct {
	Key    [32]byte               `json:"key"`
	Shares map[handler.Share]made `json:"shares"`
}

// newCredentials goes on from what is kept. What cannot be read is forgotten: its mappings are then as if others had made them.
func newCredentials(m memory, log *zap.Logger) *credentials {
	c := &credentials{memory: m, log: log}
	var state remembered
	text, err := m.Load()
	if err == nil && text != nil {
		if err = json.Unmarshal(text, &state); err == nil && (state.Key == [32]byte{} || len(state.Shares) > maxRemembered) {
			err = fmt.Errorf("it has no key, or %d shares", len(state.Shares))
		}
	}
	if err != nil {
		log.Warn("what was remembered of SMB mappings cannot be read: those that are in use take no new credentials until they are made anew", zap.Error(err))
		state = remembered{}
	}
	if state.Key == [32]byte{} {
		_, _ = rand.Read(state.Key[:]) // never fails
	}
	if c.key, c.of = state.Key, state.Shares; c.of == nil {
		c.of = map[handler.Share]made{}
	}
	return c
}

// keep stores the state. c.mu must be held. A failure costs no more than what a successor knows.
func (c *credentials) keep() {
	text, err := json.Marshal(remembered{c.key, c.of})
	if err == nil {
		err = c.memory.Store(text)
	}
	if err != nil {
		c.log.Warn("what is remembered of SMB mappings cannot be kept for the next start", zap.Error(err))
	}
}
