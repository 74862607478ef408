package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// lastRecord is the last record of a file that holds a decision.
func lastRecord(file string) (*audit.Event, error) {
	return findRecord(file, func(*audit.Event) bool { return true })
}

// lastDenial is the last record of a denial.
func lastDenial(file string) (*audit.Event, error) {
	return findRecord(file, func(e *audit.Event) bool { return e.Decision.Effect == audit.EffectDeny })
}

func findRecord(file string, is func(*audit.Event) bool) (found *audit.Event, err error) {
	in, err := os.Open(file) // #nosec G304 -- of this run
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read
	for e, err := range audit.Read(in) {
		if err != nil {
			return nil, err
		}
		if e.Decision != nil && e.Decision.Policy != nil && is(&e) {
			found = &e
		}
	}
	if found == nil {
		return nil, errors.New(filepath.Base(file) + " holds no such record")
	}
	return found, nil
}
