//go:build !windows

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/harness"
)

// Webhook is a running cmd/webhook.
type Webhook struct {
	*harness.Process
	// Address is where it answers reviews: host:port.
	Address string
	health  string
	metrics string

	mu      sync.Mutex // guards what was read of the records so far
	read    int
	records []audit.Event
}

// StartWebhook starts a webhook, with further variables of its environment, on free ports of the loopback interface. It does not wait until it is ready.
func StartWebhook(ctx context.Context, name, exe string, env []string, args ...string) (*Webhook, error) {
	cmd := exec.Command(exe, append([]string{
		"--listen-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0",
	}, args...)...) // #nosec G204 -- a program that was just built
	cmd.Env = append(cmd.Environ(), "GORACE=halt_on_error=1 exitcode=66")
	cmd.Env = append(cmd.Env, env...)
	p, err := harness.Start(name, cmd)
	if err != nil {
		return nil, err
	}
	w := &Webhook{Process: p}
	err = p.Await(ctx, startLimit, func(context.Context) error {
		found := harness.ServedAddresses(p.Stderr.Bytes())
		w.Address, w.health, w.metrics = found["reviews"], found["health"], found["metrics"]
		if w.Address == "" || w.health == "" || w.metrics == "" {
			return errors.New("the log does not say yet where it serves")
		}
		return nil
	})
	if err != nil {
		p.Kill()
		return nil, err
	}
	return w, nil
}

// WriteWebhookConfig writes a file for --config with these fields.
func WriteWebhookConfig(file, fields string) error {
	if err := os.WriteFile(file, []byte("apiVersion: pipeguard.dev/v1alpha1\nkind: WebhookConfig\n"+fields+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the webhook's configuration: %w", err)
	}
	return nil
}

// AwaitReady returns when /readyz says yes.
func (w *Webhook) AwaitReady(ctx context.Context) error {
	return w.Await(ctx, startLimit, w.Ready)
}

// Ready asks /readyz; the error is its answer.
func (w *Webhook) Ready(ctx context.Context) error {
	status, text, err := get(ctx, "http://"+w.health+"/readyz")
	if err == nil && status != http.StatusOK {
		err = errors.New(strings.TrimSpace(text))
	}
	return err
}

// Metrics returns what /metrics says.
func (w *Webhook) Metrics(ctx context.Context) (string, error) {
	status, text, err := get(ctx, "http://"+w.metrics+"/metrics")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, text)
	}
	return text, err
}

// Records returns the decision records that it wrote so far, to its standard output.
func (w *Webhook) Records() ([]audit.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.Stdout.From(w.read)
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		var e audit.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read a decision record: %w: %q", err, line)
		}
		w.records = append(w.records, e)
		w.read += len(line)
	}
	return slices.Clone(w.records), nil
}

func get(ctx context.Context, url string) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	return response.StatusCode, string(body), err
}

// Faults returns the warnings and errors of its log, and what is no line of a log: reports of the race detector, panics.
func (w *Webhook) Faults() string {
	var out strings.Builder
	for line := range bytes.Lines(w.Stderr.Bytes()) {
		var entry struct{ Level string }
		if json.Unmarshal(line, &entry) != nil || entry.Level != "info" && entry.Level != "debug" {
			out.Write(line)
		}
	}
	return out.String()
}
