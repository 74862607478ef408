//go:build !windows

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// plugin is kubectl with the command line in its PATH, as a user installs it.
type plugin struct{ kubectl, dir, kubeconfig string }

// pluginOf builds the command line as kubectl-pipeguard. It acts as config does.
func pluginOf(t *testing.T, config *rest.Config) *plugin {
	t.Helper()
	p := &plugin{kubectl: shared.tools.Path("kubectl"), dir: t.TempDir()}
	exe, err := harness.Build(t.Context(), p.dir, "./cmd/pipeguard")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(exe, filepath.Join(p.dir, "kubectl-pipeguard")); err != nil {
		t.Fatal(err)
	}
	return p.as(t, config)
}

// as is the same plugin for another user.
func (p *plugin) as(t *testing.T, config *rest.Config) *plugin {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(file, config, ""); err != nil {
		t.Fatal(err)
	}
	return &plugin{p.kubectl, p.dir, file}
}

// run runs "kubectl pipeguard" with arguments.
func (p *plugin) run(ctx context.Context, args ...string) (stdout, stderr string, code int, err error) {
	cmd := exec.CommandContext(ctx, p.kubectl, append([]string{"pipeguard"}, args...)...) // #nosec G204 -- a program of the tests
	cmd.Env = append(cmd.Environ(), "HOME="+p.dir, "KUBECONFIG="+p.kubeconfig, "PATH="+p.dir)
	return harness.Run(cmd)
}

// surveyed is what tests read of "kubectl pipeguard status -o json".
type surveyed struct {
	Verdict   string
	Revisions []string
	Checks    []struct {
		Check, State, Text string
		Items              []struct{ Name, Text string }
	}
	Modes *struct{ HostProcess string }
}

func (s *surveyed) of(check string) (state, text string) {
	for _, c := range s.Checks {
		if c.Check == check {
			return c.State, fmt.Sprint(c.Text, c.Items)
		}
	}
	return "", "no such check"
}

// states waits until checks have states.
func (p *plugin) states(t *testing.T, code int, want map[string]string) (out surveyed) {
	t.Helper()
	eventually(t, fmt.Sprintf("the status says %v", want), func(ctx context.Context) error {
		stdout, stderr, got, err := p.run(ctx, "status", "-o", "json")
		if err != nil {
			return err
		}
		out = surveyed{}
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			return fmt.Errorf("%w: exit code %d: %s%s", err, got, stdout, stderr)
		}
		var faults []error
		if got != code {
			faults = append(faults, fmt.Errorf("exit code %d, not %d: %s%s", got, code, stdout, stderr))
		}
		for check, want := range want {
			if state, text := out.of(check); state != want {
				faults = append(faults, fmt.Errorf("%s is %q, not %q: %s", check, state, want, text))
			}
		}
		return errors.Join(faults...)
	})
	return out
}

// deployed stores the chart's Deployment and parameters, which no controller of this API server acts on. Its replicas are ready.
func deployed(t *testing.T) {
	t.Helper()
	c := at(t).api.Client
	for _, o := range shared.chart.Kinds("ConfigMap", "Deployment") {
		o = o.DeepCopy()
		o.SetNamespace(cluster.Namespace)
		if o.GetKind() == "ConfigMap" { // the site's release has its parameters from a file
			if err := unstructured.SetNestedStringMap(o.Object, map[string]string{"parameters.yaml": parameters}, "data"); err != nil {
				t.Fatal(err)
			}
		}
		created(t, o)
		deleted(t, o)
	}
	eventually(t, "the Deployment has a status", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Service}, d); err != nil {
			return err
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, AvailableReplicas: n}
		return c.Status().Update(ctx, d)
	})
}

func TestWhatKubectlPipeguardSaysOfACluster(t *testing.T) {
	ungoverned(t)
	deployed(t)
	space := namespace(t, "status", "driver")
	ready(t, pipePolicy("volumes", []v1alpha1.PipePattern{"csi-proxy-volume-*"}, v1alpha1.Subject{Name: "driver", Namespace: space, ServiceAccounts: []string{"driver"}}))
	p := pluginOf(t, at(t).api.Config)
	var stored *corev1.Pod

	t.Run("the parts that are enforced", func(t *testing.T) {
		got := p.states(t, 1, map[string]string{
			"objects": "ok", "changes": "ok", "probe": "ok", "replicas": "ok", "policies": "ok", "modes": "no", "nodes": "ok",
		})
		if got.Verdict != "not-enforced" || len(got.Revisions) != 1 || got.Modes == nil || got.Modes.HostProcess != "Warn" {
			t.Errorf("got %+v", got)
		}
		stdout, stderr, code, err := p.run(t.Context(), "status")
		if err != nil || code != 1 || stderr != "" || !strings.Contains(stdout, "The guard is not enforced everywhere.") {
			t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
		}
	})

	t.Run("review --live is the webhook's answer", func(t *testing.T) {
		stored = named(pod(space, "driver", `\\.\pipe\csi-proxy-volume-v1`), space)
		stored.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		stranger := stored.DeepCopy()
		stranger.Spec.ServiceAccountName = "default"
		for _, c := range []struct {
			pod  *corev1.Pod
			code int
		}{{stored, 0}, {stranger, 1}} {
			text, err := json.Marshal(c.pod)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "pod.json")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if stdout, stderr, code, err := p.run(t.Context(), "review", "--live", file); err != nil || code != c.code || stderr != "" {
				t.Errorf("exit code %d, want %d, %v: %s%s", code, c.code, err, stdout, stderr)
			}
			if err := at(t).api.Client.Create(t.Context(), c.pod.DeepCopy(), client.DryRunAll); (err == nil) != (c.code == 0) {
				t.Errorf("the API server answers %v", err)
			}
		}
	})

	t.Run("explain names policy and subject", func(t *testing.T) {
		created(t, stored.DeepCopy())
		deleted(t, stored)
		stdout, stderr, code, err := p.run(t.Context(), "explain", "pod/"+stored.Name, "-n", space)
		if err != nil || code != 0 || stderr != "" || !strings.Contains(stdout, "PipePolicy volumes, subject driver") || !strings.Contains(stdout, "volumes/driver: all operations") {
			t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
		}
		if stdout, stderr, code, err := p.run(t.Context(), "explain", "deployment/none", "-n", space); err != nil || code != 2 || !strings.Contains(stderr, `kubectl pipeguard explain: get `) {
			t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
		}
	})

	t.Run("a selector that another hand added", func(t *testing.T) {
		selected := func(t *testing.T, s *metav1.LabelSelector) {
			t.Helper()
			eventually(t, "the configuration is changed", func(context.Context) error {
				ctx, conf := context.WithoutCancel(t.Context()), &admissionregistrationv1.ValidatingWebhookConfiguration{} // also when the test is over
				if err := at(t).api.Client.Get(ctx, client.ObjectKey{Name: cluster.ObjectConfiguration}, conf); err != nil {
					return err
				}
				for i := range conf.Webhooks {
					conf.Webhooks[i].NamespaceSelector = s
				}
				return at(t).api.Client.Update(ctx, conf)
			})
		}
		selected(t, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist}}})
		defer selected(t, &metav1.LabelSelector{})
		got := p.states(t, 1, map[string]string{"objects": "no", "changes": "ok"})
		if _, text := got.of("objects"); !strings.Contains(text, "namespaceSelector leaves namespaces out: !control-plane") {
			t.Errorf("got %s", text)
		}
	})

	t.Run("a Windows node without the guard", func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "windows-without", Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
		created(t, node)
		deleted(t, node)
		got := p.states(t, 1, map[string]string{"nodes": "no"})
		if _, text := got.of("nodes"); !strings.Contains(text, "Node windows-without has not reported") {
			t.Errorf("got %s", text)
		}
	})

	t.Run("a user without rights", func(t *testing.T) {
		eve, err := at(t).api.User("eve")
		if err != nil {
			t.Fatal(err)
		}
		got := p.as(t, eve).states(t, 2, map[string]string{
			"objects": "unknown", "changes": "unknown", "probe": "unknown", "replicas": "unknown", "policies": "unknown", "modes": "unknown", "existing": "unknown", "nodes": "unknown",
		})
		if got.Verdict != "unknown" {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("no configuration", func(t *testing.T) {
		before(t, func() {
			got := p.states(t, 1, map[string]string{"objects": "no", "probe": "no", "changes": "ok"})
			if _, text := got.of("probe"); !strings.Contains(text, "was admitted") {
				t.Errorf("got %s", text)
			}
		})
	})
}
