//go:build !windows

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/test/harness"
)

// Names of what the chart makes for a release "pipeguard".
const (
	Namespace           = "pipeguard-system"
	ServiceAccount      = "pipeguard-webhook"
	Service             = "pipeguard-webhook"
	ServiceHost         = Service + "." + Namespace + ".svc"
	ObjectConfiguration = "pipeguard-webhook"
	PolicyConfiguration = "pipeguard-policies"
	CertificateSecret   = "pipeguard-webhook-cert" // #nosec G101 -- a name
	Lease               = "pipeguard-leader"

	release           = "pipeguard"
	configurationKind = "ValidatingWebhookConfiguration"
)

// Chart is what helm makes of the chart.
type Chart []*unstructured.Unstructured

// ChartDir is where the checkout's chart is.
func ChartDir() string { return filepath.Join(harness.Root(), "charts", "pipeguard") }

// RenderChart renders the chart in dir with values as for helm's --set.
func RenderChart(ctx context.Context, tools Tools, dir string, values ...string) (Chart, error) {
	args := []string{"template", release, dir, "--namespace", Namespace, "--skip-tests"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	var out, fault bytes.Buffer
	cmd := exec.CommandContext(ctx, tools.Path("helm"), args...) // #nosec G204 -- a program of the tests
	cmd.Stdout, cmd.Stderr = &out, &fault
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("render the chart: %w\n%s", err, fault.String())
	}
	var c Chart
	for decoder := yamlutil.NewYAMLOrJSONDecoder(&out, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return c, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the rendered chart: %w", err)
		}
		if len(o.Object) > 0 {
			c = append(c, o)
		}
	}
}

// Kinds returns the objects of the kinds.
func (c Chart) Kinds(kinds ...string) (out Chart) {
	for _, o := range c {
		for _, k := range kinds {
			if o.GetKind() == k {
				out = append(out, o)
			}
		}
	}
	return out
}

// Parameters returns the chart's file of parameters.
func (c Chart) Parameters() (string, error) {
	for _, o := range c.Kinds("ConfigMap") {
		text, ok, err := unstructured.NestedString(o.Object, "data", "parameters.yaml")
		if ok || err != nil {
			return text, err
		}
	}
	return "", errors.New("the chart has no parameters")
}

// Configuration returns a webhook configuration as the chart has it, but for the port: the Service that EnsureService
// makes leads to this machine. ca may be empty: then somebody else fills it in, and the rules.
func (c Chart) Configuration(name string, port int32, ca []byte) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	for _, o := range c.Kinds(configurationKind) {
		if o.GetName() != name {
			continue
		}
		var out admissionregistrationv1.ValidatingWebhookConfiguration
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", configurationKind, name, err)
		}
		var ok bool
		for i := range out.Webhooks {
			at := &out.Webhooks[i].ClientConfig
			if at.Service == nil || at.Service.Name != Service || at.Service.Namespace != Namespace {
				return nil, fmt.Errorf("%s %s: webhook %s is not at the service %s", configurationKind, name, out.Webhooks[i].Name, Service)
			}
			at.Service.Port, at.CABundle = &port, ca
			if ca == nil {
				continue
			}
			if out.Webhooks[i].Rules, ok = entries.RulesOf(out.Webhooks[i].Name); !ok {
				return nil, fmt.Errorf("%s %s: nobody knows the rules of webhook %s", configurationKind, name, out.Webhooks[i].Name)
			}
		}
		return &out, nil
	}
	return nil, fmt.Errorf("the chart has no %s %s", configurationKind, name)
}

// EnsureService makes the Service that the chart's configurations name lead to this machine. The API server verifies
// certificates by the Service's name all the same.
func (a *APIServer) EnsureService(ctx context.Context) error {
	if err := a.EnsureNamespace(ctx, Namespace, ServiceAccount); err != nil {
		return err
	}
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Service},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	if err := a.Client.Create(ctx, s); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the service: %w", err)
	}
	return nil
}

// Helm runs helm as an administrator of the API server and returns what it printed to standard output.
func (a *APIServer) Helm(ctx context.Context, tools Tools, args ...string) (string, error) {
	home, err := os.MkdirTemp(a.dir, "helm-")
	if err != nil {
		return "", fmt.Errorf("make a home for helm: %w", err)
	}
	file := filepath.Join(home, "kubeconfig")
	if err := WriteKubeconfig(file, a.Config, ""); err != nil {
		return "", err
	}
	var out, fault bytes.Buffer
	cmd := exec.CommandContext(ctx, tools.Path("helm"), append([]string{"--kubeconfig", file}, args...)...) // #nosec G204 -- a program of the tests
	cmd.Env = append(cmd.Environ(), "HOME="+home)
	cmd.Stdout, cmd.Stderr = &out, &fault
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %q: %w\n%s", args, err, fault.String())
	}
	return out.String(), nil
}

// Notes are what helm would tell of an installation of the checkout's chart with values as for helm's --set, into this API server.
func (a *APIServer) Notes(ctx context.Context, tools Tools, values string) (string, error) {
	out, err := a.Helm(ctx, tools, "install", release, ChartDir(), "--namespace", Namespace, "--dry-run=server", "--take-ownership", "--set", values)
	if err != nil {
		return "", err
	}
	_, notes, ok := strings.Cut(out, "\nNOTES:\n")
	if !ok {
		return "", errors.New("helm install: there are no notes")
	}
	return notes, nil
}
