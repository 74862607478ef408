//go:build !windows

package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// suite is what all tests share.
type suite struct {
	tools   cluster.Tools
	dir     string
	webhook string // the program, without the race detector
	chart   cluster.Chart
	sites   sites
}

// shared is set by TestMain before any test runs.
var shared suite

// envWebhook names a webhook that is built already, for instance an earlier version's.
const envWebhook = "PIPEGUARD_WEBHOOK"

// sideBySide is how many tests run at a time, each with an API server that no other test uses meanwhile. They wait most of
// their time, for leases, settling times and the kubelet's pace of files, so there may be more of them than processors.
const sideBySide = 4

// patience is a value of the chart: the API server waits for the webhook as long as it can, so that a busy machine is no lost call. A
// webhook that does not answer is one all the same.
const patience = "webhook.timeoutSeconds=30"

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
	if err := parallel(sideBySide); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "pipeguard-integration-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	shared.dir = dir
	if shared.chart, err = cluster.RenderChart(ctx, shared.tools, cluster.ChartDir(), patience); err != nil {
		return 0, err
	}
	racing := os.Getenv(envWebhook)
	if shared.webhook = racing; racing == "" {
		if shared.webhook, err = built(ctx, "plain"); err != nil {
			return 0, err
		}
		if racing, err = built(ctx, "racing", raceFlags...); err != nil {
			return 0, err
		}
	}
	shared.sites.webhooks = []string{racing}
	code = m.Run()
	return code, shared.sites.finish(ctx, code != 0)
}

// built builds the webhook.
func built(ctx context.Context, name string, flags ...string) (string, error) {
	dir := filepath.Join(shared.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return harness.Build(ctx, dir, append(flags, "./cmd/webhook")...)
}

// parallel sets how many tests run at a time, unless the command line does.
func parallel(n int) error {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if isSet {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(n))
}
