//go:build !windows

package integration

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/report"
	"github.com/pipeguard/pipeguard/internal/served"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

const nodeAccount = "pipeguard-node"

// reporting applies what the chart gives the node component in the cluster, and waits until the API server acts by it.
func reporting(t *testing.T) {
	t.Helper()
	if err := at(t).api.EnsureNamespace(t.Context(), cluster.Namespace, nodeAccount); err != nil {
		t.Fatal(err)
	}
	applied := 0
	for _, o := range rendered(t, "node.enabled=true") {
		if o.GetLabels()["app.kubernetes.io/component"] != "node" || !strings.HasPrefix(o.GetKind(), "ClusterRole") && !strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
			continue
		}
		created(t, o)
		deleted(t, o)
		applied++
	}
	if applied != 4 {
		t.Fatalf("the chart has %d objects for reports", applied)
	}
	probe := newMember(t).client(t)
	eventually(t, "the API server judges reports", func(ctx context.Context) error {
		err := probe.Create(ctx, said("somebody-else"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "reports for no other node") {
			return fmt.Errorf("reported for another node: %w", err)
		}
		return nil
	})
}

// member is a node, with the node component's pod on it.
type member struct {
	name  string
	pod   *corev1.Pod
	token string
	// state is what its service answers; nil if it does not.
	state atomic.Pointer[bundle.Status]
	// pipes are those that its service serves; nil of one that does not say so.
	pipes atomic.Pointer[[]string]
	// dated says that its proxy does not say which schemas it reads.
	dated atomic.Bool
}

var schemas = append(access.Schemas(), bundle.Schema)

func newMember(t *testing.T) *member {
	t.Helper()
	n := &member{name: "win-" + strings.ToLower(rand.Text()[:8])}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	created(t, o)
	deleted(t, o, &v1alpha1.GuardedNode{ObjectMeta: metav1.ObjectMeta{Name: n.name}})
	n.pod = boundPod(t, cluster.Namespace, nodeAccount, n.name).pod
	n.token = requested(t, n.pod)
	return n
}

// client is that of a program in the node's pod.
func (n *member) client(t *testing.T) client.Client {
	t.Helper()
	c := rest.AnonymousClientConfig(at(t).api.Config)
	c.BearerToken = n.token
	return newClient(t, c)
}

// reports starts the node's reports about the node of a name, and returns what it says of those that fail.
func (n *member) reports(t *testing.T, about string) <-chan string {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		state := n.state.Load()
		if state == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answer := map[string]any{"node": n.name, "version": "v1.2.3", "acl": map[string]string{"revision": "sha256:ac"}, "bundle": state}
		if !n.dated.Load() {
			answer["schemas"] = schemas
		}
		if pipes := n.pipes.Load(); pipes != nil {
			answer["pipes"] = *pipes
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(service.Close)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"token": []byte(n.token), "ca.crt": at(t).api.Config.CAData} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := at(t).api.Config.Host
	if !strings.HasPrefix(server, "https://") {
		server = "https://" + server
	}
	failures := make(chan string, 10)
	r, err := report.New(report.Options{
		Node: about, Server: server, Credentials: dir, Service: strings.TrimPrefix(service.URL, "http://"),
		Say: func(format string, args ...any) { failures <- fmt.Sprintf(format, args...) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return failures
}

// said is a report that somebody writes by hand.
func said(node string) *v1alpha1.GuardedNode {
	return &v1alpha1.GuardedNode{ObjectMeta: metav1.ObjectMeta{Name: node}, NodeReport: v1alpha1.NodeReport{
		ReportedAt: metav1.Now(), State: v1alpha1.NodeGuarding, Schemas: schemas, Bundle: &v1alpha1.NodeBundle{Pool: "default", Revision: 9, PolicyRevision: "sha256:0"},
	}}
}

// reportOf waits for a report that is as wanted.
func reportOf(t *testing.T, node string, want func(*v1alpha1.GuardedNode) bool) *v1alpha1.GuardedNode {
	t.Helper()
	o := &v1alpha1.GuardedNode{}
	eventually(t, "a report of "+node, func(ctx context.Context) error {
		err := at(t).api.Client.Get(ctx, client.ObjectKey{Name: node}, o)
		if err == nil && !want(o) {
			err = fmt.Errorf("it says %+v", o.NodeReport)
		}
		return err
	})
	return o
}

func TestANodeReportsByWhichBundleItDecides(t *testing.T) {
	reporting(t)
	n := newMember(t)
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	n.state.Store(&bundle.Status{Revision: 1767323045, PolicyRevision: "sha256:ab", Audience: "default", Key: "es256:cd", ExpiresAt: ends})
	n.pipes.Store(&[]string{"csi-proxy-volume-v1", "csi-proxy-disk-v1", "Odd"})
	failures := n.reports(t, n.name)
	o := reportOf(t, n.name, func(o *v1alpha1.GuardedNode) bool { return o.State == v1alpha1.NodeGuarding })
	if want := []string{"csi-proxy-disk-v1", "csi-proxy-volume-v1"}; !slices.Equal(o.Pipes, want) {
		t.Errorf("it serves %q, want %q", o.Pipes, want)
	}
	want := &v1alpha1.NodeBundle{Pool: "default", Revision: 1767323045, PolicyRevision: "sha256:ab", Key: "es256:cd", ExpiresAt: o.Bundle.ExpiresAt}
	if diff := cmp.Diff(want, o.Bundle); diff != "" || !o.Bundle.ExpiresAt.Time.Equal(ends) || !slices.Equal(o.Schemas, schemas) || o.Version != "v1.2.3" || o.Message != "" {
		t.Errorf("%+v\n%s", o.NodeReport, diff)
	}
	// Labels of others stay, and what it does not know is in nobody's way.
	changed(t, o, func() { o.Labels = map[string]string{"team": "storage"} })
	n.state.Store(nil)
	o = reportOf(t, n.name, func(o *v1alpha1.GuardedNode) bool { return o.State == v1alpha1.NodeUnreachable })
	if o.Labels["team"] != "storage" || o.Bundle != nil || o.Pipes != nil || !strings.Contains(o.Message, "503") {
		t.Errorf("%+v", o)
	}
	n.state.Store(&bundle.Status{Audience: "default", Invalid: bundle.ReasonNone, Refused: &bundle.Refused{Reason: bundle.ReasonKey, Message: "signed by es256:00"}})
	if err := at(t).api.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	reportOf(t, n.name, func(o *v1alpha1.GuardedNode) bool {
		return o.State == v1alpha1.NodeDenying && o.Bundle.Refused == "key"
	})
	select {
	case text := <-failures:
		t.Error(text)
	default:
	}
}

func TestANodeReportsForNoOtherNode(t *testing.T) {
	reporting(t)
	n, victim := newMember(t), newMember(t)
	failures := n.reports(t, victim.name)
	select {
	case text := <-failures:
		if !strings.Contains(text, "a pod on the node "+n.name+" reports for no other node") {
			t.Error(text)
		}
	case <-time.After(limit):
		t.Fatal("it says of no failure")
	}
	theirs := said(victim.name)
	if err := victim.client(t).Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	unbound := &member{token: requested(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace}, Spec: n.pod.Spec})}
	other := named(&corev1.Pod{}, "")
	for name, c := range map[string]struct {
		do   func(ctx context.Context) error
		want string
	}{
		"changes another's report": {func(ctx context.Context) error {
			o := theirs.DeepCopy()
			o.State = v1alpha1.NodeLocal
			return n.client(t).Update(ctx, o)
		}, "reports for no other node"},
		"makes one of a name of its choice": {func(ctx context.Context) error { return n.client(t).Create(ctx, said(other.Name)) }, "reports for no other node"},
		"makes one of a name that is its beginning": {func(ctx context.Context) error {
			return n.client(t).Create(ctx, said(n.name+".example.com"))
		}, "reports for no other node"},
		"has a name made for it": {func(ctx context.Context) error {
			o := said("")
			o.GenerateName = n.name[:len(n.name)-1]
			return n.client(t).Create(ctx, o)
		}, "reports for no other node"},
		"comes with a token of no pod":       {func(ctx context.Context) error { return unbound.client(t).Create(ctx, said(n.name)) }, "bound to a pod on a node"},
		"comes with a token of no pod again": {func(ctx context.Context) error { return unbound.client(t).Update(ctx, theirs.DeepCopy()) }, "bound to a pod on a node"},
		"deletes its own":                    {func(ctx context.Context) error { return n.client(t).Delete(ctx, said(n.name)) }, "cannot delete"},
		"deletes another's":                  {func(ctx context.Context) error { return n.client(t).Delete(ctx, theirs.DeepCopy()) }, "cannot delete"},
	} {
		if err := c.do(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := n.client(t).Create(t.Context(), said(n.name)); err != nil {
		t.Errorf("its own: %v", err)
	}
	if o := reportOf(t, victim.name, func(*v1alpha1.GuardedNode) bool { return true }); o.State != v1alpha1.NodeGuarding {
		t.Errorf("the other's report is %+v", o)
	}
	admin := said("made-by-hand")
	created(t, admin)
	deleted(t, admin)
}

func TestTheNodesAccountMayReportAndNothingElse(t *testing.T) {
	reporting(t)
	n := newMember(t)
	c := n.client(t)
	if err := c.Create(t.Context(), said(n.name)); err != nil {
		t.Fatal(err)
	}
	ns := client.InNamespace(cluster.Namespace)
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: "x"}
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	for name, do := range map[string]func(ctx context.Context) error{
		"lists reports":       func(ctx context.Context) error { return c.List(ctx, &v1alpha1.GuardedNodeList{}) },
		"deletes all reports": func(ctx context.Context) error { return c.DeleteAllOf(ctx, &v1alpha1.GuardedNode{}) },
		"patches a report": func(ctx context.Context) error {
			return c.Patch(ctx, said(n.name), client.RawPatch("application/merge-patch+json", []byte(`{}`)))
		},
		"reads policies": func(ctx context.Context) error { return c.List(ctx, &v1alpha1.PipePolicyList{}) },
		"makes a policy": func(ctx context.Context) error { return c.Create(ctx, pipePolicy("x", []v1alpha1.PipePattern{"x"})) },
		"writes a policy's status": func(ctx context.Context) error {
			return c.Status().Patch(ctx, pipePolicy("x", nil), client.RawPatch("application/merge-patch+json", []byte(`{}`)))
		},
		"makes a module":           func(ctx context.Context) error { return c.Create(ctx, module("x", nil)) },
		"reads the scan's reports": func(ctx context.Context) error { return c.List(ctx, &v1alpha1.PipeReportList{}) },
		"reads a bundle": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: "pipeguard-bundle-default"}, &corev1.ConfigMap{})
		},
		"reads its configuration": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: nodeAccount}, &corev1.ConfigMap{})
		},
		"makes a ConfigMap": func(ctx context.Context) error { return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}) },
		"reads Secrets":     func(ctx context.Context) error { return c.List(ctx, &corev1.SecretList{}, ns) },
		"reads the key of bundles": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: "pipeguard-bundle-key"}, &corev1.Secret{})
		},
		"reads who leads": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: cluster.Lease}, &coordinationv1.Lease{})
		},
		"makes a lease":  func(ctx context.Context) error { return c.Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}) },
		"reads its Node": func(ctx context.Context) error { return c.Get(ctx, client.ObjectKey{Name: n.name}, &corev1.Node{}) },
		"reads its pod":  func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(n.pod), &corev1.Pod{}) },
		"reads pods":     func(ctx context.Context) error { return c.List(ctx, &corev1.PodList{}) },
		"makes a pod":    func(ctx context.Context) error { return c.Create(ctx, pod(cluster.Namespace, "default")) },
		"makes itself more mighty": func(ctx context.Context) error {
			return c.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}})
		},
		"asks for another's tokens": func(ctx context.Context) error { return tokenFor(ctx, c, cluster.ServiceAccount) },
		"asks for its own tokens":   func(ctx context.Context) error { return tokenFor(ctx, c, nodeAccount) },
	} {
		if err := do(t.Context()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:"+cluster.Namespace+":"+nodeAccount) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPolicySaysOnWhichNodesItDecides(t *testing.T) {
	ungoverned(t)
	reporting(t)
	p := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(namespace(t, "mine", driver)))
	revision := ready(t, p).Revision
	counted := func(want *v1alpha1.NodeCounts) { t.Helper(); counts(t, p, want) }
	counted(nil)

	current, late := newMember(t), newMember(t)
	current.state.Store(&bundle.Status{Revision: 8, PolicyRevision: revision, Audience: "default"})
	late.state.Store(&bundle.Status{Revision: 7, PolicyRevision: "sha256:" + strings.Repeat("0", 64), Audience: "default"})
	for _, n := range []*member{current, late} {
		n.reports(t, n.name)
	}
	quiet := said("win-quiet")
	quiet.ReportedAt = metav1.NewTime(time.Now().Add(-time.Hour))
	created(t, quiet)
	deleted(t, quiet)
	counted(&v1alpha1.NodeCounts{Total: 3, Current: 1, Behind: 1, Silent: 1, Summary: "1/3", Others: []v1alpha1.OtherNode{
		{Name: quiet.Name, Standing: "Silent", Revision: 9}, {Name: late.name, Standing: "Behind", Revision: 7},
	}})
	if s, _, err := at(t).statusOf(t.Context(), p); err != nil || s.Revision != revision || len(s.Conditions) < 4 {
		t.Errorf("the rest of the status: %+v, %v", s, err)
	}
	kubectl, err := at(t).api.Kubectl(shared.tools, at(t).api.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"get pipepolicy disk", "1/3"}, {"get pipepolicy", "NODES"},
		{"get gnode " + late.name, "Guarding   default   7"}, {"get guardednodes", "REPORTED"},
	} {
		out, _, _, err := kubectl.Run(t.Context(), "", strings.Fields(c.args)...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("kubectl %s: %v, want %q:\n%s", c.args, err, c.want, out)
		}
	}

	late.state.Store(&bundle.Status{Revision: 8, PolicyRevision: revision, Audience: "default"})
	counted(&v1alpha1.NodeCounts{Total: 3, Current: 2, Silent: 1, Summary: "2/3", Others: []v1alpha1.OtherNode{{Name: quiet.Name, Standing: "Silent", Revision: 9}}})

	// What the leader does with a silent node that is gone: it may look, and remove the report.
	leader := newClient(t, at(t).release.Config)
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := leader.Get(t.Context(), client.ObjectKey{Name: quiet.Name}, node); !apierrors.IsNotFound(err) {
		t.Errorf("a Node that is gone: %v", err)
	}
	if err := leader.Get(t.Context(), client.ObjectKey{Name: late.name}, node); err != nil {
		t.Errorf("a Node: %v", err)
	}
	if err := leader.Delete(t.Context(), said(quiet.Name), client.Preconditions{UID: &quiet.UID, ResourceVersion: &quiet.ResourceVersion}); err != nil {
		t.Errorf("a report: %v", err)
	}
	counted(&v1alpha1.NodeCounts{Total: 2, Current: 2, Summary: "2/2"})
}

// counts waits until the status of a policy says this of nodes.
func counts(t *testing.T, p *v1alpha1.PipePolicy, want *v1alpha1.NodeCounts) {
	t.Helper()
	eventually(t, "the nodes are counted", func(ctx context.Context) error {
		if err := at(t).api.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if diff := cmp.Diff(want, p.Status.Nodes); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// What concerns nodes alone does not change the revision of admission; the bundle's tells.
func isCurrent(t *testing.T, s *signed) {
	t.Helper()
	reporting(t)
	p := diskPolicy(namespace(t, "mine", driver))
	revision := s.publishes(t, p).PolicyRevision
	made := func(than uint64) *bundle.Status {
		var b bundle.Bundle
		eventually(t, "a bundle of these policies", func(context.Context) error {
			if b = newer(t, s.keys, "gpu", than); b.PolicyRevision != revision {
				return fmt.Errorf("it is of %s", b.PolicyRevision)
			}
			return nil
		})
		return &bundle.Status{Revision: b.Revision, PolicyRevision: b.PolicyRevision, Audience: "gpu"}
	}
	n := newMember(t)
	first := made(0)
	n.state.Store(first)
	n.reports(t, n.name)
	counts(t, p, &v1alpha1.NodeCounts{Total: 1, Current: 1, Summary: "1/1"})

	changed(t, p, func() { p.Spec.Node.Action = v1alpha1.NodeLogOnly })
	second := made(first.Revision)
	counts(t, p, &v1alpha1.NodeCounts{Total: 1, Behind: 1, Summary: "0/1", Others: []v1alpha1.OtherNode{
		{Name: n.name, Standing: "Behind", Revision: int64(first.Revision)},
	}})
	n.dated.Store(true)
	counts(t, p, &v1alpha1.NodeCounts{Total: 1, Behind: 1, Summary: "0/1", Others: []v1alpha1.OtherNode{
		{Name: n.name, Standing: "Unreadable", Revision: int64(first.Revision)},
	}})
	eventually(t, "the condition names it", func(ctx context.Context) error {
		status, _, err := at(t).statusOf(ctx, p)
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBundlesPublished)
		if err == nil && (c == nil || c.Reason != "Unreadable" || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, n.name)) {
			err = fmt.Errorf("it says %+v", c)
		}
		return err
	})
	if p.Status.Revision != revision {
		t.Errorf("admission has another revision: the test says little")
	}
	n.state.Store(second)
	counts(t, p, &v1alpha1.NodeCounts{Total: 1, Current: 1, Summary: "1/1"})
}

func TestAReportIsBounded(t *testing.T) {
	for name, spoil := range map[string]func(*v1alpha1.GuardedNode){
		"a state of its own":        func(o *v1alpha1.GuardedNode) { o.State = "Fine" },
		"no state":                  func(o *v1alpha1.GuardedNode) { o.State = "" },
		"no time":                   func(o *v1alpha1.GuardedNode) { o.ReportedAt = metav1.Time{} },
		"a message without end":     func(o *v1alpha1.GuardedNode) { o.Message = strings.Repeat("x", 1025) },
		"a version without end":     func(o *v1alpha1.GuardedNode) { o.Version = strings.Repeat("x", 129) },
		"a revision that cannot be": func(o *v1alpha1.GuardedNode) { o.Bundle.Revision = -1 },
		"schemas without end":       func(o *v1alpha1.GuardedNode) { o.Schemas = slices.Repeat(schemas, 5) },
		"a schema without end":      func(o *v1alpha1.GuardedNode) { o.Schemas = []string{strings.Repeat("x", 65)} },
		"pipes without end":         func(o *v1alpha1.GuardedNode) { o.Pipes = manyPipes(served.MaxPipes + 1) },
		"a pipe without end":        func(o *v1alpha1.GuardedNode) { o.Pipes = []string{strings.Repeat("x", 64)} },
		"a pipe in capitals":        func(o *v1alpha1.GuardedNode) { o.Pipes = []string{"CSI-proxy-disk-v1"} },
		"a pipe with a slash":       func(o *v1alpha1.GuardedNode) { o.Pipes = []string{"a/b"} },
		"a pipe of two lines":       func(o *v1alpha1.GuardedNode) { o.Pipes = []string{"a\nb"} },
		"a pipe with a new line":    func(o *v1alpha1.GuardedNode) { o.Pipes = []string{"a\n"} },
		"a pipe with an escape":     func(o *v1alpha1.GuardedNode) { o.Pipes = []string{"a\x1b[2J"} },
		"a pipe that no label has":  func(o *v1alpha1.GuardedNode) { o.Pipes = []string{"csi-proxy-"} },
		"a pipe without a name":     func(o *v1alpha1.GuardedNode) { o.Pipes = []string{""} },
		"a pipe twice":              func(o *v1alpha1.GuardedNode) { o.Pipes = []string{"a", "a"} },
		"a pool without end":        func(o *v1alpha1.GuardedNode) { o.Bundle.Pool = strings.Repeat("x", 64) },
	} {
		o := said("bounded")
		spoil(o)
		if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, pipes := range map[string][]string{"no list": nil, "no pipes": {}, "as many as there may be": manyPipes(served.MaxPipes)} {
		o := said("bounded")
		o.Pipes = pipes
		if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); err != nil || (o.Pipes == nil) != (pipes == nil) || len(o.Pipes) != len(pipes) {
			t.Errorf("%s: %q, %v", name, o.Pipes, err)
		}
	}
}

func manyPipes(n int) (pipes []string) {
	for i := range n {
		pipes = append(pipes, fmt.Sprintf("pipe-%d", i))
	}
	return pipes
}

// tokenFor asks for a token of an account.
func tokenFor(ctx context.Context, c client.Client, account string) error {
	o := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: account}}
	return c.SubResource("token").Create(ctx, o, &authenticationv1.TokenRequest{})
}
