//go:build !windows

package integration

import (
	"context"
	"errors"
	"os"
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

// guarded returns the release of the test's site, in cluster mode with the chart's rights and configurations. It is
// installed when it is first asked for; each test leaves it with one replica and without policies.
func guarded(t *testing.T) *cluster.Release {
	t.Helper()
	s := at(t)
	if s.release == nil {
		if err := s.api.EnsureNamespace(t.Context(), drivers, driver); err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp(shared.dir, "release-")
		if err != nil {
			t.Fatal(err)
		}
		// It outlives this test.
		r, err := s.api.Install(context.WithoutCancel(t.Context()), cluster.ReleaseOptions{
			Webhook: s.webhook, Chart: shared.chart, Dir: dir, Parameters: parameters,
		})
		if err != nil {
			if r != nil {
				err = errors.Join(err, r.Uninstall(context.WithoutCancel(t.Context())))
			}
			t.Fatal(err)
		}
		s.release = r
	}
	return s.release
}

// suspended has the API server ask no release about objects until resume is called.
func suspended(t *testing.T) (resume func()) {
	t.Helper()
	release := at(t).release
	if release == nil {
		return func() {}
	}
	if err := release.Suspend(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := release.Resume(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// before does something while the API server asks no webhook about objects: what is older than the webhook.
func before(t *testing.T, do func()) {
	t.Helper()
	defer suspended(t)()
	do()
}

// standalone starts a webhook of the test's own with other parameters, in the place of the site's release.
func standalone(t *testing.T, parameters string) *cluster.Standalone {
	t.Helper()
	t.Cleanup(suspended(t))
	s, err := at(t).api.StartStandalone(t.Context(), cluster.StandaloneOptions{
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

// recorded registers a webhook that only remembers, with the chart's matchConditions, in the place of the site's release.
func recorded(t *testing.T) *cluster.Recorder {
	t.Helper()
	return recordedBy(t, shared.chart)
}

// recordedBy does so with a chart that was rendered with other values.
func recordedBy(t *testing.T, chart cluster.Chart) *cluster.Recorder {
	t.Helper()
	s := at(t)
	r, err := cluster.StartRecorder(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(suspended(t))
	c, err := chart.Configuration(cluster.ObjectConfiguration, r.Port, r.CA)
	if err != nil {
		t.Fatal(err)
	}
	c.Name = "recorder" // the leader looks after the chart's
	for i := range c.Webhooks {
		c.Webhooks[i].ClientConfig.Service.Path = new("/" + c.Webhooks[i].Name)
	}
	if err := s.api.Register(t.Context(), c, func(answer error) bool { return answer == nil && len(r.Seen()) > 0 }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.unrecorded(context.WithoutCancel(t.Context()), c, r); err != nil {
			t.Error(err)
		}
	})
	return r
}

// unrecorded returns when the API server no longer asks the recorder: two probes in a row that it does not hear of.
func (s *site) unrecorded(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration, r *cluster.Recorder) error {
	if err := s.api.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}); err != nil {
		return err
	}
	heard := -1
	return s.api.AwaitProbe(ctx, func(answer error) bool {
		before := heard
		heard = len(r.Seen())
		return answer == nil && heard == before
	})
}
