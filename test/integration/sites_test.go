//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// site is an API server with the release on it. One test at a time has it, and leaves it as it was.
type site struct {
	api     *cluster.APIServer
	webhook string           // the program of its release
	release *cluster.Release // see guarded
}

// sites are all that were started. There are as many as tests have run at a time.
type sites struct {
	mu   sync.Mutex // guards what follows
	all  []*site
	free []*site
	held map[string]*site // by the name of the test

	// webhooks are the programs of the next sites, and shared.webhook that of all further ones. The first is built with the race
	// detector: each start of a webhook runs the policy's tests, within thirty seconds, and with it they take several times as long.
	webhooks []string
}

// at returns the site of a test. The first call takes one, which starts an API server if none is free, and lets the test run
// beside others, so it comes before anything that the test does elsewhere and before its subtests.
func at(t *testing.T) *site {
	t.Helper()
	name, _, isSubtest := strings.Cut(t.Name(), "/")
	if s := shared.sites.of(name); s != nil {
		return s
	}
	if isSubtest {
		t.Fatalf("%s has no site: its test takes one before its subtests", t.Name())
	}
	t.Parallel()
	s, err := shared.sites.take(context.WithoutCancel(t.Context()), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.sites.give(name) })
	return s
}

func (all *sites) of(test string) *site {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.held[test]
}

func (all *sites) take(ctx context.Context, test string) (*site, error) {
	all.mu.Lock()
	var s *site
	if last := len(all.free) - 1; last >= 0 {
		s, all.free = all.free[last], all.free[:last]
	}
	all.mu.Unlock()
	if s == nil {
		var err error
		if s, err = startSite(ctx); err != nil {
			return nil, err
		}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.held == nil {
		all.held = map[string]*site{}
	}
	all.held[test] = s
	return s, nil
}

func (all *sites) give(test string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.free = append(all.free, all.held[test])
	delete(all.held, test)
}

func startSite(ctx context.Context) (*site, error) {
	dir, err := os.MkdirTemp(shared.dir, "api-")
	if err != nil {
		return nil, err
	}
	api, err := cluster.StartAPIServer(ctx, cluster.APIServerOptions{
		Tools: shared.tools, Dir: dir, CRDs: filepath.Join(harness.Root(), "config", "crd"),
	})
	if err != nil {
		return nil, err
	}
	api.Client = patient{api.Client}
	return shared.sites.add(api), nil
}

func (all *sites) add(api *cluster.APIServer) *site {
	all.mu.Lock()
	defer all.mu.Unlock()
	s := &site{api: api, webhook: shared.webhook}
	if len(all.webhooks) > 0 {
		s.webhook, all.webhooks = all.webhooks[0], all.webhooks[1:]
	}
	all.all = append(all.all, s)
	return s
}

// finish ends every site once all tests are over, and shows what went wrong in the releases if tests failed.
func (all *sites) finish(ctx context.Context, failed bool) error {
	faults := make([]error, len(all.all))
	var wait sync.WaitGroup
	for i, s := range all.all {
		wait.Go(func() { faults[i] = errors.Join(s.finish(ctx, failed), s.api.Stop()) })
	}
	wait.Wait()
	return errors.Join(faults...)
}

// finish ends the release. A right that the chart does not give is a fault, whether or not a test has noticed it.
func (s *site) finish(ctx context.Context, failed bool) error {
	if s.release == nil {
		return nil
	}
	var lacks error
	for _, replica := range s.release.Replicas {
		faults := replica.Faults()
		if strings.Contains(faults, "is forbidden: User") {
			lacks, failed = errors.New("the chart's rights do not suffice"), true
		}
		if failed {
			fmt.Fprintf(os.Stderr, "--- log of %s\n%s", replica.Name, faults)
		}
	}
	return errors.Join(lacks, s.release.Uninstall(ctx))
}
