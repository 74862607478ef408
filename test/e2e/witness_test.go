//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/controller/witness"
	"github.com/pipeguard/pipeguard/test/e2e/cluster"
	"github.com/pipeguard/pipeguard/test/harness"
)

const (
	// witnessSecret is where the chart looks for the key that cosigns.
	witnessSecret = "pipeguard-witness-key"
	witnessName   = "example.com/pipeguard-witness"
	origin        = "pipeguard.dev/audit/" + cluster.NodeName
)

// auditKeys makes the keys of the node's log and of the witness, gives the release the second, and returns the file of the first and
// the verifier key of the second.
func (n *guardedNode) auditKeys(t *testing.T, cli, dir string) (logKey, witnessKey string) {
	t.Helper()
	logKey = filepath.Join(dir, "audit.key")
	secret := filepath.Join(dir, "witness.key")
	for _, args := range [][]string{{logKey, "--for", "log", "--name", cluster.NodeName}, {secret, "--for", "witness", "--name", witnessName}} {
		if out, err := exec.CommandContext(t.Context(), cli, append([]string{"keys", "generate"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("make a key: %v\n%s", err, out)
		}
	}
	if _, err := shared.Kubectl(t.Context(), "--namespace="+system, "create", "secret", "generic", witnessSecret, "--from-file=key="+secret); err != nil {
		t.Fatal(err)
	}
	var public [2][]byte
	for i, file := range []string{logKey, secret} {
		var err error
		if public[i], err = os.ReadFile(file + ".pub"); err != nil {
			t.Fatal(err)
		}
	}
	n.verifiers = filepath.Join(dir, "verifiers")
	if err := os.WriteFile(n.verifiers, append(public[0], public[1]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return logKey, strings.TrimSpace(string(public[1]))
}

// cosigned returns what the witness remembers of the node's log, and how many records that covers.
func cosigned(ctx context.Context) (checkpoint string, records uint64, err error) {
	memory, err := witness.NewConfigMaps(shared.Config, system)
	if err != nil {
		return "", 0, err
	}
	turn, err := memory.Begin(ctx, origin)
	if err != nil {
		return "", 0, err
	}
	turn.End()
	checkpoint = string(turn.Entry().Checkpoint)
	lines := strings.Split(checkpoint, "\n")
	if len(lines) < 3 || lines[0] != origin {
		return "", 0, fmt.Errorf("the witness remembers %q", checkpoint)
	}
	records, err = strconv.ParseUint(lines[1], 10, 64)
	return checkpoint, records, err
}

// mustCosign waits until the witness has seen more records than before, and returns how many.
func mustCosign(t *testing.T, before uint64) (records uint64) {
	t.Helper()
	harness.Eventually(t, readyLimit, "the witness has cosigned the log", func(ctx context.Context) (err error) {
		if _, records, err = cosigned(ctx); err == nil && records <= before {
			err = fmt.Errorf("it has cosigned %d records", records)
		}
		return err
	})
	return records
}

// putBackLogIsFound puts an older state of the node's audit log back, checkpoints and all. The proxy does not go on with it; where the state
// beside the key is put back as well, the node, the cluster and the reviewer find it.
func putBackLogIsFound(t *testing.T, n *guardedNode) {
	older, state := n.audits+"-older", filepath.Join(filepath.Dir(n.verifiers), "audit.key.signed")
	n.stop(t)
	olderState, err := os.ReadFile(state)
	if err := errors.Join(err, os.CopyFS(older, os.DirFS(n.audits))); err != nil {
		t.Fatal(err)
	}
	n.start(t)
	_, before, err := cosigned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 15 { // a record of each, within the budget of refusals
		_, _ = n.callFromNode(t, "ListDiskIDs") // what becomes of it is another test's
	}
	mustCosign(t, before+10)
	n.stop(t)
	if err := errors.Join(os.Rename(n.audits, n.audits+"-true"), os.Rename(older, n.audits), os.Chmod(n.audits, 0o700)); err != nil {
		t.Fatal(err)
	}
	limited, stop := context.WithTimeout(t.Context(), readyLimit)
	defer stop()
	const want = "the audit log does not match its last checkpoint"
	if out, err := exec.CommandContext(limited, n.proxy, n.args()...).CombinedOutput(); err == nil || limited.Err() != nil || !strings.Contains(string(out), want) {
		t.Fatalf("the older log without the state beside the key: %v\n%s", err, out)
	}
	if err := os.WriteFile(state, olderState, 0o600); err != nil {
		t.Fatal(err)
	}
	n.start(t)

	harness.Eventually(t, readyLimit, "the node knows", func(ctx context.Context) error {
		text, err := n.metrics(ctx)
		if err == nil && !strings.Contains(text, "pipeguard_audit_witness_contradicts 1") {
			err = errors.New("its metrics do not say so")
		}
		return err
	})
	harness.Eventually(t, readyLimit, "the cluster knows", func(ctx context.Context) error {
		var events corev1.EventList
		if err := shared.Client.List(ctx, &events, client.InNamespace("default")); err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == cluster.NodeName && strings.HasPrefix(e.Reason, "AuditLog") {
				return nil
			}
		}
		return errors.New("no Event about the node says so")
	})
	checkpoint, _, err := cosigned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(filepath.Dir(n.verifiers), "outside")
	if err := os.WriteFile(outside, []byte(checkpoint), 0o600); err != nil {
		t.Fatal(err)
	}
	n.stop(t) // so that both logs are whole
	for log, want := range map[string]int{n.audits: 1, n.audits + "-true": 3} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(n.tools, "pipeguard"), "audit", "verify", log,
			"--keys", n.verifiers, "--checkpoint", outside, "--require-witness")
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		// The end of the true log is newer than what the witness saw last, or is that: it was asked when the log was closed.
		if code := cmd.ProcessState.ExitCode(); code != want && (want != 3 || code != 0) {
			t.Errorf("the verdict about %s has exit code %d, want %d:\n%s", log, code, want, out)
		}
	}
	n.start(t)
}

// metrics is what the proxy tells of itself in figures.
func (n *guardedNode) metrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+statusAddress+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
