//go:build !windows

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
)

// AuditLog is the API server's own audit log.
type AuditLog struct {
	file string

	mu     sync.Mutex // guards what was read so far
	offset int64
	events []AuditEvent
}

// AuditEvent is what tests read of an entry: https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/.
type AuditEvent struct {
	AuditID          string            `json:"auditID"`
	Stage            string            `json:"stage"`
	Verb             string            `json:"verb"`
	User             AuditUser         `json:"user"`
	ImpersonatedUser *AuditUser        `json:"impersonatedUser"`
	ObjectRef        *AuditObject      `json:"objectRef"`
	ResponseStatus   *AuditStatus      `json:"responseStatus"`
	Annotations      map[string]string `json:"annotations"`
}

// AuditUser is who asked.
type AuditUser struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

// AuditObject is what a request was about.
type AuditObject struct {
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// AuditStatus is how a request was answered.
type AuditStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Events returns the entries so far that keep likes, in the order of the file. What was read once is not read again.
func (l *AuditLog) Events(keep func(*AuditEvent) bool) ([]AuditEvent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readOn(); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var out []AuditEvent
	for i := range l.events {
		if keep(&l.events[i]) {
			out = append(out, l.events[i])
		}
	}
	return out, nil
}

// readOn reads the lines that are new. One that is still being written is left for the next time.
func (l *AuditLog) readOn() error {
	f, err := os.Open(l.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.NewSectionReader(f, l.offset, math.MaxInt64-l.offset))
	if err != nil {
		return err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(text) {
		var e AuditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%w: %q", err, line)
		}
		l.events = append(l.events, e)
		l.offset += int64(len(line))
	}
	return nil
}
