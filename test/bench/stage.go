//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// stage is an API server with the release that is measured.
type stage struct {
	size     size
	progress io.Writer
	dir      string
	api      *cluster.APIServer
	release  *cluster.Release
	creator  *creator
	asker    *asker
}

// first is the replica that leads, and that is measured.
func (s *stage) first() *cluster.Replica { return s.release.Replicas[0] }

func (s *stage) note(format string, args ...any) {
	_, _ = fmt.Fprintf(s.progress, "  "+format+"\n", args...)
}

// setUp starts everything, and leaves nothing behind if that does not succeed.
func setUp(ctx context.Context, size size, progress io.Writer) (s *stage, err error) {
	s = &stage{size: size, progress: progress}
	begun := s // s is nil where an error is returned
	defer func() {
		if err != nil {
			err = errors.Join(err, begun.clear())
		}
	}()
	tools, err := cluster.FindTools("kube-apiserver", "etcd", "kubectl", "helm")
	if err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "pipeguard-bench-"); err != nil {
		return nil, err
	}
	chart, err := cluster.RenderChart(ctx, tools, cluster.ChartDir(), values()...)
	if err != nil {
		return nil, err
	}
	exe, err := harness.Build(ctx, s.dir, "./cmd/webhook")
	if err != nil {
		return nil, err
	}
	if s.api, err = cluster.StartAPIServer(ctx, cluster.APIServerOptions{
		Tools: tools, Dir: s.dir, CRDs: filepath.Join(harness.Root(), "config", "crd"),
	}); err != nil {
		return nil, err
	}
	// Programs that are started from now on get these: one core, and the bound that the chart sets.
	err = errors.Join(os.Setenv("GOMAXPROCS", "1"), os.Setenv("GOMEMLIMIT", memoryLimit(chart)))
	if err != nil {
		return nil, err
	}
	if s.release, err = s.api.Install(ctx, cluster.ReleaseOptions{Webhook: exe, Chart: chart, Dir: s.dir}); err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(s.first().Address)
	if err != nil {
		return nil, fmt.Errorf("where the webhook serves: %w", err)
	}
	authority, err := makeVariants(ctx, s.api, int32(at.Port()))
	if err != nil {
		return nil, err
	}
	if s.creator, err = newCreator(s.api.Config); err != nil {
		return nil, err
	}
	if s.asker, err = newAsker(authority); err != nil {
		return nil, err
	}
	return s, s.awaitVariants(ctx)
}

// memoryLimit is GOMEMLIMIT of the chart's container, "off" without one.
func memoryLimit(chart cluster.Chart) string {
	for _, d := range chart.Kinds("Deployment") {
		containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			container, _ := c.(map[string]any)
			env, _, _ := unstructured.NestedSlice(container, "env")
			for _, e := range env {
				if variable, _ := e.(map[string]any); variable["name"] == "GOMEMLIMIT" {
					return fmt.Sprint(variable["value"])
				}
			}
		}
	}
	return "off"
}

// awaitVariants returns when each variant answers each kind as it must: the API server takes over configurations a moment
// after it has stored them.
func (s *stage) awaitVariants(ctx context.Context) error {
	for _, v := range variants {
		for _, kind := range kinds {
			o := order{Variant: v, Pod: kind}
			if err := harness.Await(ctx, awaitLimit, func(ctx context.Context) error { _, err := s.creator.create(ctx, o); return err }); err != nil {
				return fmt.Errorf("%s pod, %s: %w", kind, v, err)
			}
		}
	}
	return nil
}

// awaitLimit bounds the waits for the cluster.
const awaitLimit = 3 * time.Minute

// pause returns after d, or with an error when ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// clear ends what was started. The API server goes with everything that it holds.
func (s *stage) clear() error {
	var faults []error
	if s.release != nil {
		for _, r := range s.release.Replicas {
			faults = append(faults, r.Stop(time.Minute), r.Link.Close())
		}
		faults = append(faults, s.release.Balancer.Close())
	}
	if s.api != nil {
		faults = append(faults, s.api.Stop())
	}
	if s.dir != "" {
		faults = append(faults, os.RemoveAll(s.dir))
	}
	return errors.Join(faults...)
}
