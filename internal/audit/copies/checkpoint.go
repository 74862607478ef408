package copies

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// Checkpoints returns a sink for each destination that takes checkpoints. A checkpoint comes behind the records that were given before it.
func (c *Copies) Checkpoints() []evidence.Sink {
	out := make([]evidence.Sink, 0, len(c.sinks))
	for _, s := range c.sinks {
		out = append(out, s)
	}
	return out
}

// sink gives checkpoints to one destination.
type sink struct {
	queue *queue
	every time.Duration
	now   func() time.Time

	mu   sync.Mutex // guards last, and lets one checkpoint at a time into the queue
	last time.Time  // when one was taken
}

// Name implements evidence.Sink.
func (s *sink) Name() string { return s.queue.to.Name() }

// Send implements evidence.Sink. A checkpoint that follows too soon on another is passed over: the next says more. The last of a
// log is not.
func (s *sink) Send(ctx context.Context, c evidence.Copy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if since := now.Sub(s.last); !c.IsLast && !s.last.IsZero() && since >= 0 && since < s.every {
		return nil
	}
	if err := s.queue.checkpoint(ctx, c.Raw); err != nil {
		return err
	}
	s.last = now
	return nil
}

// checkpointLine is a checkpoint as a line of JSON, without newline. It has no version and no number, so that no reader of
// records takes it for one, whatever the note says.
func checkpointLine(raw []byte) ([]byte, error) {
	line, err := json.Marshal(struct {
		Type string `json:"type"`
		Note string `json:"note"`
	}{"checkpoint", string(raw)})
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	return inert.JSON(line), nil
}
