//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pipeguard/pipeguard/test/e2e/cluster"
)

// shared is set by TestMain before any test runs: the tests run one after the other on one cluster.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // of the client
	os.Exit(cluster.Enter(func(dir string) int { return run(m, dir) }))
}

func run(m *testing.M, dir string) (code int) {
	began := time.Now()
	var err error
	shared, err = cluster.Start(context.Background(), dir)
	defer func() {
		if code != 0 {
			shared.Logs(os.Stderr, 60)
		}
		shared.Stop()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/e2e:", err)
		return 1
	}
	fmt.Printf("the node is ready after %.0f s\n", time.Since(began).Seconds())
	code = m.Run()
	hold(dir)
	return code
}

// envHold keeps the cluster after the tests until the file that it names exists, for a look at what failed.
const envHold = "PIPEGUARD_E2E_HOLD"

func hold(dir string) {
	until := os.Getenv(envHold)
	if until == "" {
		return
	}
	fmt.Printf("the cluster runs until %s exists; kubectl --kubeconfig %s/pki/admin.conf, in the namespaces of: pgrep -f %[2]s\n", until, dir)
	for {
		if _, err := os.Stat(until); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}
