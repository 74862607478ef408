//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// suite is what all tests share: one API server. They run one after the other, and each leaves it as it was.
type suite struct {
	api     *cluster.APIServer
	tools   cluster.Tools
	dir     string
	webhook string // the program
	chart   cluster.Chart
	release *cluster.Release // see guarded
}

// shared is set by TestMain before any test runs.
var shared suite

// envWebhook names a webhook that is built already, for instance an earlier version's.
const envWebhook = "PIPEGUARD_WEBHOOK"

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // of controller-runtime's clients
	code, err := run(context.Background(), m)
	if missing, ok := errors.AsType[*cluster.MissingError](err); ok && os.Getenv("CI") != "true" {
		fmt.Fprintln(os.Stderr, "NO TESTS ON A REAL API SERVER:", missing)
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	if shared.tools, err = cluster.FindTools("kube-apiserver", "etcd", "kubectl", "helm"); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "pipeguard-integration-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	shared.dir = dir
	if shared.chart, err = cluster.RenderChart(ctx, shared.tools, cluster.ChartDir()); err != nil {
		return 0, err
	}
	if shared.webhook = os.Getenv(envWebhook); shared.webhook == "" {
		if shared.webhook, err = cluster.Build(ctx, dir, "./cmd/webhook", raceEnabled); err != nil {
			return 0, err
		}
	}
	shared.api, err = cluster.StartAPIServer(ctx, cluster.APIServerOptions{
		Tools: shared.tools, Dir: dir, CRDs: filepath.Join(cluster.Root(), "config", "crd"),
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.api.Stop()) }()
	shared.api.Client = patient{shared.api.Client}
	code = m.Run()
	return code, finish(ctx, code != 0)
}
