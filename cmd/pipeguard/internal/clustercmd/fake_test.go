package clustercmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/reviewcmd"
	"github.com/pipeguard/pipeguard/internal/entries"
)

// Paths of the fake API server.
const (
	atConfigurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	atDeployment     = "/apis/apps/v1/namespaces/guard/deployments/webhook"
	atParameters     = "/api/v1/namespaces/guard/configmaps/parameters"
	atConfigMaps     = "/api/v1/namespaces/guard/configmaps"
	atLeases         = "/apis/coordination.k8s.io/v1/namespaces/guard/leases"
	atNodes          = "/api/v1/nodes"
	atPolicies       = "/apis/pipeguard.dev/v1alpha1/pipepolicies"
	atModules        = "/apis/pipeguard.dev/v1alpha1/policymodules"
	atReports        = "/apis/pipeguard.dev/v1alpha1/pipereports"
	atClusterReports = "/apis/pipeguard.dev/v1alpha1/clusterpipereports"
	atGuardedNodes   = "/apis/pipeguard.dev/v1alpha1/guardednodes"
	atPods           = "/api/v1/namespaces/shop/pods"
	atTemplates      = "/api/v1/namespaces/shop/podtemplates"
	atDeployments    = "/apis/apps/v1/namespaces/shop/deployments"
)

const revision = "sha256:1"

// fakeAPI is an API server that knows what a test puts into it.
type fakeAPI struct {
	objects map[string]any           // of GET
	lists   map[string][]any         // of GET
	answers map[string]metav1.Status // of any method; that of POST, if it has a code

	mu       sync.Mutex // guards requests
	requests []string
}

// strict is a cluster that enforces the guard everywhere.
func strict() *fakeAPI {
	now := metav1.Now()
	parameters := "requirement: AllowedNamespace\nhostProcess: Deny\nequalPower: Deny\nhostPaths: Deny\n"
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: appsv1.DeploymentStatus{ObservedGeneration: 2, ReadyReplicas: 2, UpdatedReplicas: 2}}
	deployment.Spec.Replicas = new(int32(2))
	volume := corev1.Volume{Name: "parameters"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "parameters"}}
	deployment.Spec.Template.Annotations = map[string]string{configAnnotation: "floor: {mode: \"Off\"}\n"}
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config"}, volume}
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationRevision: revision}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Time}},
		}
	}
	policy := &v1alpha1.PipePolicy{TypeMeta: metav1.TypeMeta{APIVersion: "pipeguard.dev/v1alpha1", Kind: "PipePolicy"}, ObjectMeta: metav1.ObjectMeta{Name: "disks", Generation: 3}}
	policy.Spec.Pipes = []v1alpha1.PipePattern{"csi-proxy-disk-*"}
	policy.Status.ObservedGeneration = 3
	policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	guarded := &v1alpha1.GuardedNode{ObjectMeta: metav1.ObjectMeta{Name: "win1"}}
	guarded.ReportedAt, guarded.State = now, v1alpha1.NodeGuarding
	guarded.Bundle = &v1alpha1.NodeBundle{Pool: "windows", Revision: 7, PolicyRevision: revision}
	bundle := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "pipeguard-bundle-windows", Labels: map[string]string{v1alpha1.LabelNodePool: "windows"}, Annotations: map[string]string{v1alpha1.AnnotationBundleRevision: "7"},
	}}
	return &fakeAPI{
		objects: map[string]any{
			atDeployment: deployment,
			atParameters: &corev1.ConfigMap{Data: map[string]string{"parameters.yaml": parameters}},
		},
		lists: map[string][]any{
			atConfigurations: {configuration("objects", webhooks()...), configuration("changes", policyWebhook()), configuration("others", admissionregistrationv1.ValidatingWebhook{Name: "a.example.com"})},
			atLeases:         {lease("one"), lease("two")}, atNodes: {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "win1"}}},
			atPolicies: {policy}, atModules: {}, atReports: {}, atClusterReports: {}, atGuardedNodes: {guarded}, atConfigMaps: {bundle},
		},
		answers: map[string]metav1.Status{atPods: refusedByWebhook("pods")},
	}
}

func configuration(name string, webhooks ...admissionregistrationv1.ValidatingWebhook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	digest, err := entries.Digest(webhooks)
	if err != nil {
		panic(err) // of what was just made
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{entries.DigestAnnotation: digest}}, Webhooks: webhooks}
}

func webhook(name string, conditions ...string) admissionregistrationv1.ValidatingWebhook {
	out := admissionregistrationv1.ValidatingWebhook{Name: name + entries.Suffix, FailurePolicy: new(admissionregistrationv1.Fail)}
	out.Rules, _ = entries.RulesOf(out.Name)
	out.ClientConfig = admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "guard", Name: "webhook"}, CABundle: []byte("authority"),
	}
	for _, c := range conditions {
		out.MatchConditions = append(out.MatchConditions, admissionregistrationv1.MatchCondition{Name: c, Expression: "true"})
	}
	return out
}

// webhooks are the entries about objects, as they are once in force, without those for HostProcess containers.
func webhooks() (out []admissionregistrationv1.ValidatingWebhook) {
	for prefix, condition := range map[string]string{"": "could-reach-a-pipe", entries.PathPrefix: "could-reach-no-pipe"} {
		for _, name := range entries.WithPrefix(prefix) {
			out = append(out, webhook(strings.TrimSuffix(name, entries.Suffix), condition))
		}
	}
	slices.SortFunc(out, func(a, b admissionregistrationv1.ValidatingWebhook) int {
		return cmp.Or(strings.Compare(entries.PrefixOf(a.Name), entries.PrefixOf(b.Name)), strings.Compare(a.Name, b.Name))
	})
	return out
}

func policyWebhook() admissionregistrationv1.ValidatingWebhook {
	return webhook("policies")
}

func refusedByWebhook(name string) metav1.Status {
	return failure(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "`+name+`.pipeguard.dev" denied the request: Pipeguard refuses Pod "probe"`+"\nPG003: a volume")
}

func failure(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

func lacking(what string) metav1.Status {
	return failure(http.StatusForbidden, metav1.StatusReasonForbidden, what+` is forbidden: User "eve" cannot do that`)
}

// ServeHTTP answers as an API server does, lists in pages of one object.
func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status, ok := f.answers[r.URL.Path]; ok && (r.Method == http.MethodPost || f.lists[r.URL.Path] == nil || status.Reason == metav1.StatusReasonForbidden) {
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{}`))
		return
	}
	if o, ok := f.objects[r.URL.Path]; ok {
		_ = json.NewEncoder(w).Encode(o)
		return
	}
	items, ok := f.lists[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(failure(http.StatusNotFound, metav1.StatusReasonNotFound, r.URL.Path+" not found"))
		return
	}
	at, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	next, page := "", items[at:]
	if len(page) > 1 {
		next, page = strconv.Itoa(at+1), page[:1]
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"continue": next}, "items": page})
}

// result is what a user sees.
type result struct {
	code        int
	out, errOut string
}

// run runs a command line of a program on the API server, with the namespace "shop" in its context.
func (f *fakeAPI) run(t *testing.T, args ...string) result {
	t.Helper()
	return runOn(t, f, args...)
}

func runOn(t *testing.T, handler http.Handler, args ...string) result {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}],
  clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: t}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := &Cluster{}
	root := cli.Group("pipeguard", "", "", NewStatus(), reviewcmd.NewCommand(cluster), reviewcmd.NewExplain(&Cluster{}))
	var out, errOut strings.Builder
	code := cli.Run(t.Context(), root, append(args, "--kubeconfig", file), strings.NewReader(""), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// survey is the report of "pipeguard status".
func (f *fakeAPI) survey(t *testing.T) (statusReport, result) {
	t.Helper()
	got := f.run(t, "status", "-o", "json")
	var report statusReport
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v: %s%s", err, got.out, got.errOut)
	}
	return report, got
}

// of is the check of a name.
func (r statusReport) of(t *testing.T, name string) check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Check == name {
			return c
		}
	}
	t.Fatalf("there is no check %q", name)
	return check{}
}

func (c check) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", c.State, c.Text)
	for _, i := range c.Items {
		fmt.Fprintf(&b, "\n%s: %s", i.Name, i.Text)
	}
	return b.String()
}

// ago is a time of a report.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }
