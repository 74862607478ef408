//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/store"
	"github.com/pipeguard/pipeguard/test/harness"
)

// watched is a witness that listens, and the configuration of a proxy that asks it.
type watched struct {
	config     string // file
	remembered string // beside the key
	keys       evidence.Keys
	store      string       // directory with what it cosigned last
	ahead      atomic.Int64 // of its clock before the node's, a time.Duration
}

func newWatched(t *testing.T, more string) *watched {
	t.Helper()
	dir := t.TempDir()
	logKey, err := evidence.NewKey(evidence.Origin("win-1"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := evidence.NewKey("example.com/witness")
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{config: configFor(t, "PathExists"), store: t.TempDir()}
	if w.keys, err = evidence.ParseKeys(logKey.LogKey() + "\n" + key.WitnessKey()); err != nil {
		t.Fatal(err)
	}
	witness, err := evidence.NewWitness(evidence.WitnessOptions{
		Key: key, Store: store.New(w.store), Keys: func(context.Context, string) (evidence.Keys, error) { return w.keys, nil },
		Now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(witness)
	t.Cleanup(server.Close)
	authority := filepath.Join(dir, "ca.pem")
	harness.Replace(t, authority, harness.CertificatePEM(server.Certificate()))
	file := filepath.Join(dir, "audit.key")
	w.remembered = file + ".signed"
	if err := evidence.WriteKey(file, logKey); err != nil {
		t.Fatal(err)
	}
	harness.Replace(t, w.config, read(t, w.config)+fmt.Sprintf("audit:\n  signing: {key: %s}\n  witness: {url: %q, key: %q, caFile: %s, interval: 1s}\n%s",
		file, server.URL, key.WitnessKey(), authority, more))
	return w
}

// outside are the checkpoints that the witness keeps.
func (w *watched) outside(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.store, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

func (w *watched) verify(t *testing.T, log string) evidence.Report {
	t.Helper()
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: log, Keys: w.keys, Outside: w.outside(t), RequireWitness: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWitnessKnowsTheLogWhenTheProxyHasStopped(t *testing.T) {
	w := newWatched(t, "")
	p := startProgram(t, "--config", w.config)
	pathExists(t, p)
	p.stop()
	if r := w.verify(t, filepath.Join(p.sockets, "audit")); r.Verdict != evidence.VerdictOK || r.Witnessed != r.LastSeq {
		t.Errorf("%+v", r)
	}
}

func TestLogThatIsPutBackIsFoundByItsWitness(t *testing.T) {
	w := newWatched(t, "")
	log := filepath.Join(t.TempDir(), "audit")
	older := log + "-older"
	var remembered []byte
	for i := range 2 {
		p := startProgram(t, "--config", w.config, "--audit-log", log)
		for range 3 {
			pathExists(t, p)
		}
		p.stop()
		if i == 0 {
			if err := os.CopyFS(older, os.DirFS(log)); err != nil {
				t.Fatal(err)
			}
			var err error
			if remembered, err = os.ReadFile(w.remembered); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(w.remembered, remembered, 0o600); err != nil { // the whole node was put back
		t.Fatal(err)
	}
	if err := os.Rename(log, log+"-true"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(older, log); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(log, 0o700); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	p := startProgram(t, "--config", w.config, "--audit-log", log, "-metrics-bind-address", "127.0.0.1:0")
	p.stderr.Await(t, 1, "THE WITNESS HAS SEEN ANOTHER AUDIT LOG OF THIS NODE")
	shows(t, p, "pipeguard_audit_witness_contradicts 1")
	pathExists(t, p) // calls go on: whoever watches the witness decides
	p.stop()
	if r := w.verify(t, log); r.Verdict != evidence.VerdictTampered {
		t.Errorf("the log that was put back: %+v", r)
	}
	if r := w.verify(t, log+"-true"); r.Verdict != evidence.VerdictOK {
		t.Errorf("the true one: %+v", r)
	}
}

func TestAWitnessWhoseClockDiffersIsToldOfAndContradictsNothing(t *testing.T) {
	w := newWatched(t, "")
	w.ahead.Store(int64(time.Hour))
	p := startProgram(t, "--config", w.config, "-metrics-bind-address", "127.0.0.1:0")
	pathExists(t, p)
	p.stderr.Await(t, 1, "the clocks of this node and of the witness differ, and the audit log is not cosigned")
	shows(t, p, "pipeguard_audit_witness_clock_differs 1", "pipeguard_audit_witness_contradicts 0", "pipeguard_audit_witness_cosigned_timestamp_seconds 0")
	w.ahead.Store(0)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.stderr.String(), "the witness cosigns the audit log"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("put right, and it is not cosigned:\n%s", p.stderr.String())
		}
		pathExists(t, p) // a log that grows is signed sooner
	}
	shows(t, p, "pipeguard_audit_witness_clock_differs 0")
	p.stop()
	if said := p.stderr.String(); strings.Contains(said, "THE WITNESS HAS SEEN") {
		t.Errorf("it was called a contradiction:\n%s", said)
	}
}

// shows waits until the metrics of a program have some lines.
func shows(t *testing.T, p *program, lines ...string) {
	t.Helper()
	address := regexp.MustCompile(`"metrics served","address":"([^"]+)"`).FindStringSubmatch(p.stderr.String())
	if address == nil {
		t.Fatal("no metrics address")
	}
	deadline := time.Now().Add(time.Minute)
	for {
		text := fetched(t, "http://"+address[1]+"/metrics")
		if !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(text, line+"\n") }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q are not in\n%s", lines, text)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func fetched(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCopiesGoToStandardOutput(t *testing.T) {
	w := newWatched(t, "  copies: {stdout: true}\n")
	p := startProgram(t, "--config", w.config)
	pathExists(t, p)
	p.stop()
	said := p.stdout.String()
	for line := range strings.Lines(lines(t, filepath.Join(p.sockets, "audit"))) {
		if !strings.Contains(said, line) {
			t.Errorf("%s is missing on standard output", line)
		}
	}
	if !strings.Contains(said, `{"type":"checkpoint","note":"`) {
		t.Errorf("no checkpoint in %s", said)
	}
}

func TestCopiesThatAreAskedForAndCannotBeMadeStopTheStart(t *testing.T) {
	file := configFor(t, "PathExists")
	harness.Replace(t, file, read(t, file)+"audit: {copies: {eventLog: denied}}\n")
	if said := refusal(t, "--config", file); !strings.Contains(said, "audit.copies.eventLog") {
		t.Errorf("said %s", said)
	}
}
