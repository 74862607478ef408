//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/harness"
)

// Cluster is a running cluster with one node.
type Cluster struct {
	// Config is an administrator's.
	Config *rest.Config
	// Client is an administrator's, without a cache.
	Client client.Client

	dir       string // all that the cluster writes is below it
	logs      string
	ca        *authority
	processes []*process // of the control plane and kube-proxy, in the order of their start
	// containerd and kubelet are the node.
	containerd, kubelet *process
	dns                 *dns
}

// Start returns when the node is ready. What was started before an error is stopped by Stop, too.
func Start(ctx context.Context, dir string) (*Cluster, error) {
	c := &Cluster{dir: dir, logs: filepath.Join(dir, "logs")}
	if err := os.Mkdir(c.logs, 0o700); err != nil {
		return c, err
	}
	return c, c.bringUp(ctx)
}

func (c *Cluster) bringUp(ctx context.Context) error {
	since := time.Now()
	archive, err := c.buildProgram(ctx)
	if err != nil {
		return err
	}
	if err := c.issueAll(); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.StartControlPlane(ctx); err != nil {
		return err
	}
	if err := c.configureNode(); err != nil {
		return fmt.Errorf("configure the node: %w", err)
	}
	if err := c.startNode(ctx); err != nil {
		return err
	}
	if err := c.Import(ctx, archive); err != nil {
		return err
	}
	if err := c.startDNS(); err != nil {
		return err
	}
	return c.AwaitNode(ctx, since)
}

// connect makes the administrator's client.
func (c *Cluster) connect() (err error) {
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.ca.file("admin.conf")); err != nil {
		return err
	}
	c.Config.QPS = -1                           // no limit
	c.Config.WarningHandler = rest.NoWarnings{} // the default prints them into the tests' output
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgo.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	c.Client, err = client.New(c.Config, client.Options{Scheme: scheme})
	return err
}

// Stop ends every program that was started, the node first.
func (c *Cluster) Stop() {
	c.dns.stop()
	all := slices.Clone(c.processes)
	for _, p := range []*process{c.containerd, c.kubelet} {
		if p != nil {
			all = append(all, p)
		}
	}
	for _, p := range slices.Backward(all) {
		_ = p.Stop(5 * time.Second) // it may have ended, and is killed if it does not end
	}
}

// Logs writes the last lines of every program's log.
func (c *Cluster) Logs(w io.Writer, lines int) {
	all := slices.Clone(c.processes)
	for _, p := range []*process{c.containerd, c.kubelet} {
		if p != nil {
			all = append(all, p)
		}
	}
	for _, p := range all {
		fmt.Fprintf(w, "--- %s, the last %d lines\n%s", p.Name, lines, p.tail(lines)) //nolint:errcheck // to a terminal
	}
}

// Kubectl runs kubectl as an administrator and returns what it writes to both streams.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.output(ctx, filepath.Join(harness.Tools(), "kubectl"), append([]string{"--kubeconfig", c.ca.file("admin.conf")}, args...)...)
}

// Helm runs helm as an administrator.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	return c.output(ctx, filepath.Join(harness.Tools(), "helm"), append([]string{"--kubeconfig", c.ca.file("admin.conf")}, args...)...)
}

func (c *Cluster) output(ctx context.Context, exe string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, exe, args...) // #nosec G204 -- the programs of the cluster
	cmd.Env = append(os.Environ(), "HOME="+c.dir) // helm and kubectl keep caches
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %q: %w\n%s", filepath.Base(exe), args, err, out)
	}
	return string(out), nil
}

// path is below the directory of the run.
func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }
