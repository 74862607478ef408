//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// drivers is the namespace, and driver the service account in it, that the parameters allow guarded pipes.
const (
	drivers    = "drivers"
	driver     = "csi-driver-node"
	parameters = `requirement: AllowedNamespace
hostProcess: Warn
allowedNamespaces:
  ` + drivers + `:
    serviceAccounts: [` + driver + `]
`
)

// guarded returns the release that most tests share, in cluster mode with the chart's rights and configurations. It is
// installed when it is first asked for; each test leaves it with one replica and without policies.
func guarded(t *testing.T) *cluster.Release {
	t.Helper()
	if shared.release == nil {
		if err := shared.api.EnsureNamespace(t.Context(), drivers, driver); err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp(shared.dir, "release-")
		if err != nil {
			t.Fatal(err)
		}
		// It outlives this test.
		r, err := shared.api.Install(context.WithoutCancel(t.Context()), cluster.ReleaseOptions{
			Webhook: shared.webhook, Chart: shared.chart, Dir: dir, Parameters: parameters,
		})
		if err != nil {
			err = errors.Join(err, r.Uninstall(context.WithoutCancel(t.Context())))
			t.Fatal(err)
		}
		shared.release = r
	}
	return shared.release
}

// before does something while the API server asks no webhook about objects: what is older than the webhook.
func before(t *testing.T, do func()) {
	t.Helper()
	if shared.release == nil {
		do()
		return
	}
	if err := shared.release.Suspend(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shared.release.Resume(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	do()
}

// standalone starts a webhook of the test's own with other parameters, in the place of the shared one.
func standalone(t *testing.T, parameters string) *cluster.Standalone {
	t.Helper()
	if shared.release != nil {
		if err := shared.release.Suspend(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := shared.release.Resume(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	s, err := shared.api.StartStandalone(t.Context(), cluster.StandaloneOptions{
		Webhook: shared.webhook, Chart: shared.chart, Dir: t.TempDir(), Parameters: parameters,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// recorded registers a webhook that only remembers, with the chart's matchConditions, in the place of the shared one.
func recorded(t *testing.T) *cluster.Recorder {
	t.Helper()
	r, err := cluster.StartRecorder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if shared.release != nil {
		if err := shared.release.Suspend(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := shared.release.Resume(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	c, err := shared.chart.Configuration(cluster.ObjectConfiguration, r.Port, r.CA)
	if err != nil {
		t.Fatal(err)
	}
	c.Name = "recorder" // the leader looks after the chart's
	if err := shared.api.Register(t.Context(), c, func(answer error) bool { return answer == nil && len(r.Seen()) > 0 }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unrecorded(context.WithoutCancel(t.Context()), c, r); err != nil {
			t.Error(err)
		}
	})
	return r
}

// unrecorded returns when the API server no longer asks the recorder: two probes in a row that it does not hear of.
func unrecorded(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration, r *cluster.Recorder) error {
	if err := shared.api.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}); err != nil {
		return err
	}
	heard := -1
	return shared.api.AwaitProbe(ctx, func(answer error) bool {
		before := heard
		heard = len(r.Seen())
		return answer == nil && heard == before
	})
}

// finish ends the shared release, and shows what went wrong in it if the tests failed. A right that the chart does not
// give is a fault, whether or not a test has noticed it.
func finish(ctx context.Context, failed bool) error {
	if shared.release == nil {
		return nil
	}
	var lacks error
	for _, replica := range shared.release.Replicas {
		faults := replica.Faults()
		if strings.Contains(faults, "is forbidden: User") {
			lacks, failed = errors.New("the chart's rights do not suffice"), true
		}
		if failed {
			fmt.Fprintf(os.Stderr, "--- log of %s\n%s", replica.Name, faults)
		}
	}
	return errors.Join(lacks, shared.release.Uninstall(ctx))
}
