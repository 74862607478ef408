package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
)

// lastRecord is the last record of a file that holds a decision.
func lastRecord(file string) (*audit.Event, error) {
	return findRecord(file, func(*audit.Event) bool { return true })
}

// lastDenial is the last record of a denial.
func lastDenial(file string) (*audit.Event, error) {
	return findRecord(file, func(e *audit.Event) bool { return e.Decision.Effect == audit.EffectDeny })
}

// findRecord waits for a record: the webhook answers before it has written.
func findRecord(file string, is func(*audit.Event) bool) (*audit.Event, error) {
	for patience := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		found, err := searchRecord(file, is)
		if err == nil || time.Now().After(patience) {
			return found, err
		}
	}
}

func searchRecord(file string, is func(*audit.Event) bool) (found *audit.Event, err error) {
	for e, err := range recorded.Events(file) {
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

// linesOf are the raw records of a directory.
func linesOf(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- of this run
		if err != nil {
			return "", err
		}
		all.Write(text)
	}
	return all.String(), nil
}
