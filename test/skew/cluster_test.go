//go:build !windows

package skew

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

const parameters = "requirement: AllowedNamespace\n"

// site is an API server, and a release that is installed in it.
type site struct {
	t       *testing.T
	tools   cluster.Tools
	api     *cluster.APIServer
	kubectl *cluster.Kubectl
	guard   *cluster.Release
	chart   map[release]cluster.Chart
}

// install starts an API server with the CRDs of one release, and the webhook of one by its chart.
func install(t *testing.T, crds, webhook release, others ...release) *site {
	t.Helper()
	s := &site{t: t, tools: tools(t, "kube-apiserver", "etcd", "kubectl", "helm"), chart: map[release]cluster.Chart{}}
	dir, err := os.MkdirTemp(temporary, "api-")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	if s.api, err = cluster.StartAPIServer(ctx, cluster.APIServerOptions{Tools: s.tools, Dir: dir, CRDs: crds.file("config", "crd")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.api.Stop(); err != nil {
			t.Error(err)
		}
	})
	if s.kubectl, err = s.api.Kubectl(s.tools, s.api.Config); err != nil {
		t.Fatal(err)
	}
	for _, r := range append(others, webhook) {
		if s.chart[r], err = cluster.RenderChart(ctx, s.tools, r.file("charts", "pipeguard"), "webhook.timeoutSeconds=30"); err != nil {
			t.Fatal(err)
		}
	}
	s.guard, err = s.api.Install(ctx, cluster.ReleaseOptions{Webhook: webhook.program("webhook"), Chart: s.chart[webhook], Dir: dir, Parameters: parameters})
	if s.guard != nil {
		t.Cleanup(func() {
			if err := s.guard.Uninstall(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apply applies manifests with kubectl, which has the API server refuse fields that it does not know.
func (s *site) apply(args ...string) (said string, ok bool) {
	s.t.Helper()
	stdout, stderr, code, err := s.kubectl.Run(s.t.Context(), "", append([]string{"apply", "--validate=strict"}, args...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return stdout + stderr, code == 0
}

// samples are policy objects of a release.
func (r release) samples() []string {
	return []string{"-f", r.file("config", "samples", "pipepolicy_azuredisk.yaml"), "-f", r.file("config", "samples", "pipepolicy_exception.yaml")}
}

// decides waits until as many replicas live, and a PipePolicy decides. Replicas of two releases may have two revisions.
func (s *site) decides(name string, replicas int32) {
	s.t.Helper()
	harness.Eventually(s.t, startLimit, "the policy "+name+" decides", func(ctx context.Context) error {
		var p v1alpha1.PipePolicy
		if err := s.api.Client.Get(ctx, client.ObjectKey{Name: name}, &p); err != nil {
			return err
		}
		if r := p.Status.Replicas; r.Live != replicas || r.Current == 0 || p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
}

// status is what `pipeguard status` of a release says of the cluster.
func (s *site) status(by release) map[string]string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(file, s.api.Config, ""); err != nil {
		s.t.Fatal(err)
	}
	stdout, stderr, code := by.run(s.t, "pipeguard", "status", "--kubeconfig", file, "-o", "json")
	var report struct {
		Schema string
		Checks []struct{ Check, State, Text string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.Schema != "pipeguard.dev/status/v1" {
		s.t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	states := map[string]string{}
	for _, c := range report.Checks {
		states[c.Check] = c.State
		s.t.Logf("status: %s %s %s", c.Check, c.State, c.Text)
	}
	return states
}

// refuses asks the API server for a pod with every pipe until it is refused.
func (s *site) refuses() {
	s.t.Helper()
	if err := s.api.AwaitProbe(s.t.Context(), cluster.Refuses); err != nil {
		s.t.Fatal(err)
	}
}

func TestAWebhookIsUpgradedAndRolledBack(t *testing.T) {
	old, now := releases(t)
	s := install(t, old, old, now)
	if said, ok := s.apply(append(now.samples(), "--dry-run=server")...); !ok {
		t.Errorf("the CRDs and the webhook before refuse samples of this release: %s", said)
	}
	if said, ok := s.apply(old.samples()...); !ok {
		t.Fatal(said)
	}
	s.decides("disk-inventory", 1)
	if states := s.status(now); states["probe"] != "ok" || states["policies"] != "ok" {
		t.Errorf("of a cluster of the release before status says %v", states)
	}

	// CRDs first, the webhook of before goes on.
	if said, ok := s.apply("--server-side", "--force-conflicts", "-k", now.file("config", "crd")); !ok {
		t.Fatal(said)
	}
	if said, ok := s.apply(append(now.samples(), "--dry-run=server")...); !ok {
		t.Errorf("the webhook before refuses samples of this release: %s", said)
	}
	s.refuses()

	// One replica after the other, with those of both releases in between.
	s.guard.SetProgram(now.program("webhook"))
	replica, err := s.guard.AddReplica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.refuses()
	s.decides("disk-inventory", 2)
	s.upgrade(now)
	s.decides("disk-inventory", 1)
	s.status(now)

	s.guard.SetProgram(old.program("webhook"))
	s.upgrade(old)
	s.decides("disk-inventory", 1)
}

// upgrade replaces all replicas with the rights of a release's chart.
func (s *site) upgrade(to release) {
	s.t.Helper()
	if err := s.guard.Upgrade(s.t.Context(), s.chart[to], 1); err != nil {
		s.t.Fatal(err)
	}
	s.refuses()
}

// The chart before has the rules, and that of this release leaves them to the leader. A copy of the configuration goes on asking meanwhile.
func TestTheFirstUpgradeHasAGapWithoutACopyOfTheConfiguration(t *testing.T) {
	old, now := releases(t)
	s := install(t, old, old, now)
	if said, ok := s.apply("--server-side", "--force-conflicts", "-k", now.file("config", "crd")); !ok {
		t.Fatal(said)
	}
	before := s.configuration(cluster.ObjectConfiguration)
	s.charted(now)
	if err := s.api.AwaitProbe(t.Context(), func(answer error) bool { return answer == nil }); err != nil {
		t.Fatalf("without rules something is asked: %v", err)
	}
	s.configured(before)
	s.refuses()

	const name = "pipeguard-upgrade"
	if err := s.api.Client.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: before.Webhooks}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(takesEffect)
	asked := s.asks()
	s.charted(now)
	s.guard.SetProgram(now.program("webhook"))
	s.upgrade(now)
	harness.Eventually(t, startLimit, "each entry has rules", func(context.Context) error { return s.haveRules() })
	if err := s.api.Delete(t.Context(), s.configuration(name)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(takesEffect)
	if admitted, all := asked(); admitted > 0 || all < 10 {
		t.Errorf("%d of %d pods with every pipe were admitted", admitted, all)
	}
	if states := s.status(now); states["objects"] != "ok" {
		t.Errorf("without the copy status says %v", states)
	}
}

// resourcesOfEntries prints a line for each entry: its name, and what its rules are about. docs/versions.md has it.
const resourcesOfEntries = `{range .webhooks[*]}{.name}: {.rules[*].resources}{"\n"}{end}`

// haveRules returns an error if an entry for objects has no rules, by what the page about versions has an operator run.
func (s *site) haveRules() error {
	s.t.Helper()
	page := release{files: harness.Root()}.read(s.t, "docs", "versions.md")
	if !strings.Contains(page, " -o jsonpath='"+resourcesOfEntries+"'") {
		s.t.Fatal("docs/versions.md says something else")
	}
	stdout, stderr, code, err := s.kubectl.Run(s.t.Context(), "", "get", "validatingwebhookconfiguration", cluster.ObjectConfiguration, "-o", "jsonpath="+resourcesOfEntries)
	if err != nil || code != 0 {
		return fmt.Errorf("exit code %d, %w: %s", code, err, stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	for _, line := range lines {
		if name, resources, ok := strings.Cut(line, ": "); !ok || name == "" || !strings.HasPrefix(resources, "[") {
			return fmt.Errorf("%s", stdout)
		}
	}
	if all := len(s.configuration(cluster.ObjectConfiguration).Webhooks); len(lines) != all {
		return fmt.Errorf("%d lines of %d entries: %s", len(lines), all, stdout)
	}
	return nil
}

// takesEffect is how long an API server takes to act by a changed configuration, with time to spare.
const takesEffect = 3 * time.Second

func (s *site) configuration(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	s.t.Helper()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := s.api.Client.Get(s.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// configured stores the entries and annotations of a configuration for objects.
func (s *site) configured(want *admissionregistrationv1.ValidatingWebhookConfiguration) {
	s.t.Helper()
	stored := s.configuration(cluster.ObjectConfiguration)
	stored.Webhooks, stored.Annotations = want.Webhooks, want.Annotations
	if err := s.api.Client.Update(s.t.Context(), stored); err != nil {
		s.t.Fatal(err)
	}
}

// charted makes of the configuration for objects what helm makes of it, which leaves the authority where it is.
func (s *site) charted(by release) {
	s.t.Helper()
	c, err := s.chart[by].Configuration(cluster.ObjectConfiguration, s.guard.Balancer.Port(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range c.Webhooks {
		c.Webhooks[i].ClientConfig.CABundle = s.configuration(c.Name).Webhooks[0].ClientConfig.CABundle
	}
	s.configured(c)
}

// asks for a pod with every pipe, as a trial, again and again, until stop is called. stop returns how many trials there were, and how many were admitted.
func (s *site) asks() (stop func() (admitted, all int)) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	var admitted, all int
	go func() {
		defer close(done)
		for periodic.Sleep(ctx, 20*time.Millisecond) {
			all++
			if s.api.Client.Create(ctx, cluster.Probe(), client.DryRunAll) == nil {
				admitted++
			}
		}
	}()
	return func() (int, int) { cancel(); <-done; return admitted, all }
}

// A condition that a later release adds to subjects must not be passed over: without it, the subject would be a wider one.
func TestAStoredFieldOfALaterReleaseStopsTheObject(t *testing.T) {
	_, now := releases(t)
	s := install(t, now, now)
	if said, ok := s.apply(now.samples()...); !ok {
		t.Fatal(said)
	}
	s.decides("disk-inventory", 1)
	s.laterDefinition(now)
	later := laterPolicy(t, now)
	harness.Eventually(t, startLimit, "the webhook refuses a policy of the later release", func(context.Context) error {
		said, ok := s.apply("-f", later)
		if ok {
			t.Fatalf("applied: %s", said)
		}
		if !strings.Contains(said, "admission webhook") || !strings.Contains(said, `unknown field "spec.subjects[0].zones"`) {
			return fmt.Errorf("%s", said) // the API server, until it serves by the definition
		}
		return nil
	})

	// Stored while the webhook of the later release was there.
	if err := s.guard.SuspendPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, startLimit, "the policy of the later release is stored", func(context.Context) error {
		if said, ok := s.apply("-f", later); !ok {
			return fmt.Errorf("%s", said)
		}
		return nil
	})
	s.refusesUnknown()
	s.refuses() // by what was active before

	// A replica that has nothing from before permits nothing.
	fresh, err := s.guard.AddReplica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, startLimit, "a fresh replica says what it refuses", func(context.Context) error {
		if !strings.Contains(fresh.Stderr.String(), "does not know spec.subjects[0].zones") {
			return fmt.Errorf("%s", fresh.Stderr.String())
		}
		return nil
	})
	if err := fresh.Ready(t.Context()); err == nil {
		t.Error("a replica without policies is ready")
	}
}

// For a second or more after a definition has changed, the API server tells of objects as the definition before had them, to those who watched
// before: without the fields that it did not have.
func TestAFieldStoredTogetherWithItsDefinitionStopsTheObject(t *testing.T) {
	_, now := releases(t)
	s := install(t, now, now)
	if said, ok := s.apply(now.samples()...); !ok {
		t.Fatal(said)
	}
	s.decides("disk-inventory", 1)
	if err := s.guard.SuspendPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	later := laterPolicy(t, now)
	s.laterDefinition(now)
	harness.Eventually(t, startLimit, "the policy of the later release is stored", func(ctx context.Context) error {
		var p v1alpha1.PipePolicy
		said, ok := s.apply("-f", later)
		if err := s.api.Client.Get(ctx, client.ObjectKey{Name: "disk-inventory"}, &p); err != nil || !ok || p.Unknown == "" {
			return fmt.Errorf("%s, unknown are %q, %w", said, p.Unknown, err)
		}
		return nil
	})
	s.refusesUnknown()
	s.refuses() // by what was active before
}

// refusesUnknown waits until disk-inventory is stored with a field of a later release, and its status says that it is refused for that.
func (s *site) refusesUnknown() {
	s.t.Helper()
	harness.Eventually(s.t, startLimit, "it is refused", func(ctx context.Context) error {
		var p v1alpha1.PipePolicy
		if err := s.api.Client.Get(ctx, client.ObjectKey{Name: "disk-inventory"}, &p); err != nil {
			return err
		}
		if p.Unknown != "spec.subjects[0].zones" {
			return fmt.Errorf("unknown are %q", p.Unknown)
		}
		if text := asJSON(s.t, p.Status); !strings.Contains(text, "does not know spec.subjects[0].zones: upgrade the webhook") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
}

// laterPolicy is a file with the policy disk-inventory, narrowed by a field that laterDefinition adds.
func laterPolicy(t *testing.T, now release) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "later.yaml")
	const at = "      containers: [collector]\n"
	text := now.read(t, "config", "samples", "pipepolicy_exception.yaml")
	if strings.Count(text, at) != 1 {
		t.Fatalf("%d subjects with a container", strings.Count(text, at))
	}
	harness.Replace(t, file, strings.Replace(text, at, at+"      zones: [a]\n", 1))
	return file
}

// laterDefinition adds a field to subjects, as the CRDs of a later release would.
func (s *site) laterDefinition(now release) {
	s.t.Helper()
	const at = "                    serviceAccounts:\n"
	text := now.read(s.t, "config", "crd", "pipeguard.dev_pipepolicies.yaml")
	if strings.Count(text, at) != 1 {
		s.t.Fatalf("%d places for a field of subjects", strings.Count(text, at))
	}
	file := filepath.Join(s.t.TempDir(), "crd.yaml")
	harness.Replace(s.t, file, strings.Replace(text, at, "                    zones:\n                      items: {type: string}\n                      type: array\n"+at, 1))
	if said, ok := s.apply("--server-side", "--force-conflicts", "-f", file); !ok {
		s.t.Fatal(said)
	}
}
