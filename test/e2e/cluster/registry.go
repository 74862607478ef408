//go:build e2e

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pipeguard/pipeguard/test/harness"
)

// registryHost is the registry's address. On localhost, neither a push nor containerd asks for TLS.
const registryHost = "localhost:5000"

// StartRegistry starts an empty registry, and returns its host and port. It keeps what is pushed in memory.
func (c *Cluster) StartRegistry(ctx context.Context) (host string, err error) {
	exe := c.path("registry-server")                                                                                   // "registry" is a directory of helm's
	build := exec.CommandContext(ctx, "go", "build", "-o", exe, "github.com/google/go-containerregistry/cmd/registry") // #nosec G204 -- the module that pushes, too
	build.Dir = filepath.Join(harness.Root(), "hack", "image")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build a registry: %w\n%s", err, out)
	}
	p, err := c.startAs("registry", exe, "-port=5000")
	if err != nil {
		return "", err
	}
	c.processes = append(c.processes, p)
	return registryHost, p.Await(ctx, startLimit, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+registryHost+"/v2/", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// Shell runs lines of a document in the checkout, as an administrator of the cluster: they find kubectl and helm.
func (c *Cluster) Shell(ctx context.Context, lines string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", lines) // #nosec G204 -- lines of the repository
	cmd.Dir = harness.Root()
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+c.ca.file("admin.conf"), "PATH="+harness.Tools()+":"+os.Getenv("PATH"),
		"HELM_CACHE_HOME="+c.dir, "HELM_CONFIG_HOME="+c.dir, "HELM_DATA_HOME="+c.dir, "DOCKER_CONFIG="+c.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%w of\n%s\n%s", err, lines, out)
	}
	return string(out), nil
}
