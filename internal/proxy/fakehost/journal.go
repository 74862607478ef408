package fakehost

import (
	"encoding/json"
	"fmt"
)

// Line is one line of Options.Journal, in JSON. Secrets are not in it.
type Line struct {
	Op   string   `json:"op"`
	Args []string `json:"args"`
	// Ended says that the operation has been carried out, or tried. Without it, it is about to be.
	Ended bool   `json:"ended,omitempty"`
	Err   string `json:"err,omitempty"` // why it did not succeed
}

// note writes a line. h.mu must be held, so that no other line comes between.
func (h *Host) note(l Line) error {
	if h.options.Journal == nil {
		return nil
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = h.options.Journal.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("journal of the invented machine: %w", err)
	}
	return nil
}
