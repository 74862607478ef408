//go:build linux

package main

import (
	"context"
	"crypto/x509"
	"embed"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/certs"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// constraints are what Gatekeeper judges by.
//
//go:embed testdata/gatekeeper/*.yaml
var constraints embed.FS

// Names of Gatekeeper's chart, and of a pod that nothing runs: Gatekeeper makes it the owner of what it stores.
const (
	gatekeeperModule    = "github.com/open-policy-agent/gatekeeper/v3"
	gatekeeperNamespace = "gatekeeper-system"
	gatekeeperPod       = "gatekeeper"
)

// startGatekeeper starts an API server with the constraint, and Gatekeeper with nothing to do but to answer reviews.
func startGatekeeper(ctx context.Context, exe, dir string) (s *server, err error) {
	dir = filepath.Join(dir, "gatekeeper")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	tools, err := cluster.FindTools("kube-apiserver", "etcd", "kubectl")
	if err != nil {
		return nil, err
	}
	definitions, err := gatekeeperDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	api, err := cluster.StartAPIServer(ctx, cluster.APIServerOptions{Tools: tools, Dir: dir, CRDs: definitions})
	if err != nil {
		return nil, err
	}
	defer func() {
		if s == nil {
			err = errors.Join(err, api.Stop())
		}
	}()
	if err := prepareGatekeeper(ctx, api, dir); err != nil {
		return nil, err
	}
	// What makes a constraint's definition of the template watches it as well, so it runs by itself, and first.
	first, err := runGatekeeper(exe, dir, "webhook", "status", "generate")
	if err != nil {
		return nil, err
	}
	err = first.Await(ctx, startLimit, func(ctx context.Context) error { return apply(ctx, api.Client, "constraint.yaml") })
	if err == nil {
		err = first.Await(ctx, startLimit, first.judgesAll)
	}
	first.Kill()
	if err != nil {
		return nil, err
	}
	if s, err = runGatekeeper(exe, dir, "webhook"); err != nil {
		return nil, err
	}
	s.clear = api.Stop
	return s, s.Await(ctx, startLimit, s.judgesAll)
}

// gatekeeperDefinitions is the directory of Gatekeeper's CRDs, in the module that it is built from.
func gatekeeperDefinitions(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", gatekeeperModule)
	list.Dir = filepath.Join(harness.Root(), "test", "tools", "gatekeeper")
	out, err := list.Output()
	if dir := strings.TrimSpace(string(out)); err == nil && dir != "" {
		return filepath.Join(dir, "charts", "gatekeeper", "crds"), nil
	}
	return "", fmt.Errorf("find the module of Gatekeeper: %w", err)
}

// prepareGatekeeper stores what Gatekeeper needs, and writes its certificate and its kubeconfig into dir.
func prepareGatekeeper(ctx context.Context, api *cluster.APIServer, dir string) error {
	if err := api.EnsureNamespace(ctx, gatekeeperNamespace); err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gatekeeperNamespace, Name: gatekeeperPod}, Spec: corev1.PodSpec{
		SchedulerName: "none", Containers: []corev1.Container{{Name: "manager", Image: "example.com/gatekeeper"}},
	}}
	if err := api.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create the pod of Gatekeeper: %w", err)
	}
	for _, namespace := range []string{"kube-system", "shop"} {
		if err := api.EnsureNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	if err := apply(ctx, api.Client, "template.yaml"); err != nil {
		return err
	}
	authority, err := certs.NewAuthority([]string{"localhost"}, time.Now(), 24*time.Hour)
	if err != nil {
		return err
	}
	leaf, err := authority.Issue([]string{"localhost"}, time.Now(), 24*time.Hour)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}), 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
		os.WriteFile(filepath.Join(dir, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw}), 0o600),
		cluster.WriteKubeconfig(filepath.Join(dir, "kubeconfig"), api.Config, ""),
	)
}

func apply(ctx context.Context, c client.Client, name string) error {
	text, err := constraints.ReadFile("testdata/gatekeeper/" + name)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &o.Object); err != nil {
		return err
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("bench"), client.ForceOwnership)
}

func runGatekeeper(exe, dir string, operations ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig", filepath.Join(dir, "kubeconfig"), "--cert-dir", dir, "--disable-cert-rotation", "--host", "127.0.0.1", "--port", fmt.Sprint(port),
		"--health-addr", "127.0.0.1:0", "--prometheus-port", "0", "--log-level", "ERROR",
	}
	for _, operation := range operations {
		args = append(args, "--operation", operation)
	}
	command := exec.Command(exe, args...) //nolint:gosec // the program that is measured
	command.Env = append(os.Environ(), "POD_NAME="+gatekeeperPod, "POD_NAMESPACE="+gatekeeperNamespace)
	p, err := harness.Start(gatekeeper, command)
	if err != nil {
		return nil, err
	}
	return &server{Process: p, name: gatekeeper, url: fmt.Sprintf("https://127.0.0.1:%d/v1/admit", port), judges: true, client: newClient()}, nil
}

// freePort is one that nothing listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // binding does not wait
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }() // the port is read before
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("listening on %s", l.Addr())
	}
	return address.Port, nil
}
