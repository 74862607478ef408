//go:build !windows

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/test/bundletest"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// signed is the site's release while it makes bundles for the pools default and gpu.
type signed struct {
	*cluster.Release
	file string      // of the key
	keys bundle.Keys // what nodes pin
}

func TestBundles(t *testing.T) {
	s := signs(t)
	for _, c := range []struct {
		name string
		test func(t *testing.T, s *signed)
	}{
		{"one object refuses the pod and the call under one revision", refusesBoth},
		{"a changed file of parameters reaches the nodes", parametersReachNodes},
		{"what others do to a bundle is undone", undone},
		{"another key signs another revision and a broken one none", otherKeys},
		{"the webhook may touch no other ConfigMap", touchesNoOther},
		{"every replica serves what the leader has written", servesEverywhere},
		{"who waits hears of the next bundle and of the end", hears},
		{"another leader goes on with the revisions", goesOn},
		{"a node is current once it has the bundle that the leader made last", isCurrent},
	} {
		t.Run(c.name, func(t *testing.T) {
			ungoverned(t)
			t.Cleanup(func() { s.two(t) })
			c.test(t, s)
		})
	}
}

// two replaces a replica that a test has stopped.
func (s *signed) two(t *testing.T) {
	t.Helper()
	for len(s.Replicas) < 2 {
		replica, err := s.AddReplica(context.WithoutCancel(t.Context()), s.args(t)...)
		if err == nil {
			err = replica.AwaitReady(context.WithoutCancel(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// signs upgrades the site's release to one that makes bundles, with two replicas, until the test is over.
func signs(t *testing.T) *signed {
	t.Helper()
	ungoverned(t)
	ctx := context.WithoutCancel(t.Context())
	chart := rendered(t, "bundles.enabled=true", "bundles.pools={default,gpu}")
	s := &signed{Release: guarded(t), file: filepath.Join(t.TempDir(), "bundle.key")}
	t.Cleanup(func() {
		for _, replica := range s.Replicas {
			if strings.Contains(replica.Faults(), "is forbidden: User") {
				t.Errorf("the chart's rights do not suffice:\n%s", replica.Faults())
			}
		}
		if err := s.Upgrade(ctx, nil, 1); err != nil {
			t.Error(err)
		}
		for _, o := range chart.Kinds("Role", "RoleBinding") {
			if strings.HasSuffix(o.GetName(), "-bundles") {
				if err := at(t).api.Delete(ctx, o.DeepCopy()); err != nil {
					t.Error(err)
				}
			}
		}
		for _, pool := range []string{"default", "gpu"} {
			if err := at(t).api.Delete(ctx, configMap(pool)); err != nil {
				t.Error(err)
			}
		}
	})
	s.rotate(t)
	if err := s.Upgrade(ctx, chart, 2, s.args(t)...); err != nil {
		t.Fatal(err)
	}
	return s
}

// args are those of its replicas.
func (s *signed) args(t *testing.T) []string {
	t.Helper()
	config := s.file + ".yaml"
	if err := cluster.WriteWebhookConfig(config, "bundles: {key: "+s.file+", pools: [default, gpu]}"); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", config}
}

// rotate replaces the key that bundles are signed with. Replicas that run look at its file every ten seconds.
func (s *signed) rotate(t *testing.T) {
	t.Helper()
	key := bundletest.NewKey(t)
	harness.Replace(t, s.file, bundletest.PrivatePEM(t, key))
	var err error
	if s.keys, err = bundle.ParseKeys(key.PublicPEM()); err != nil {
		t.Fatal(err)
	}
}

// publishes creates a policy and waits until it decides and a bundle of it is stored under the same revision.
func (s *signed) publishes(t *testing.T, p *v1alpha1.PipePolicy) (b bundle.Bundle) {
	t.Helper()
	ready(t, p)
	eventually(t, "the bundle is of the policies that decide", func(ctx context.Context) error {
		status, generation, err := at(t).statusOf(ctx, p)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBundlesPublished); c == nil || c.ObservedGeneration != generation || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %+v", c)
		}
		text, err := at(t).raw(ctx, "default")
		if err != nil {
			return err
		}
		if b, _, err = s.keys.Verify(text); err == nil && b.PolicyRevision != status.Revision {
			err = fmt.Errorf("it is of %s, and %s decides", b.PolicyRevision, status.Revision)
		}
		return err
	})
	return b
}

func configMap(pool string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "pipeguard-bundle-" + pool}}
}

// raw is the bundle that is stored for a pool.
func (s *site) raw(ctx context.Context, pool string) ([]byte, error) {
	o := configMap(pool)
	err := s.api.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
	return o.BinaryData["bundle.tar.gz"], err
}

// newer waits for a bundle that these keys have signed, with a revision above another.
func newer(t *testing.T, keys bundle.Keys, pool string, than uint64) (b bundle.Bundle) {
	t.Helper()
	eventually(t, fmt.Sprintf("a bundle for %s above %d", pool, than), func(ctx context.Context) error {
		text, err := at(t).raw(ctx, pool)
		if err != nil {
			return err
		}
		if b, _, err = keys.Verify(text); err == nil && b.Revision <= than {
			err = fmt.Errorf("revision %d", b.Revision)
		}
		return err
	})
	return b
}

// on is the bundle as a node takes it.
func on(t *testing.T, b bundle.Bundle) *nodepolicy.Live {
	t.Helper()
	live, err := nodepolicy.Try(t.Context(), nodepolicy.Options{
		Served: []access.API{{Group: "disk", Version: "v1", Operations: []string{"ListDiskIDs"}}},
		Policy: nodepolicy.EngineOptions(policy.Options{}),
	}, b)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// lists is a call of ListDiskIDs by a pod's container.
func lists(namespace, account string) access.Call {
	return access.Call{Group: "disk", Version: "v1", Operation: "ListDiskIDs", Caller: caller.Caller{Assurance: "pod", User: caller.User{SID: "S-1-5-93-2-1"}, Pod: caller.Pod{Namespace: namespace, ServiceAccount: account, Name: "x"}, Container: caller.Container{Name: "app", Image: image}}}
}

// named12 is a revision of policies as refusals write it.
var named12 = regexp.MustCompile(`sha256:[0-9a-f]{12}`)

func diskPolicy(namespace string) *v1alpha1.PipePolicy {
	return pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(namespace))
}

func parametersReachNodes(t *testing.T, s *signed) {
	before, err := os.ReadFile(s.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.SetParameters(string(before)); err != nil {
			t.Error(err)
		}
	})
	last, policies := newer(t, s.keys, "default", 0), ""
	for method, effect := range map[string]access.Effect{"ListDiskIDs": access.Allow, "GetDiskStats": access.Deny} {
		if err := s.SetParameters(`{"pipePolicies": {"disk": {"pipes": ["csi-proxy-disk-v1"], "subjects": [{"name": "node", "namespace": "x", "serviceAccounts": ["y"], "node": {"methods": ["` + method + `"]}}]}}}`); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(string(last.ACL), method) { // an activation of before may come between
			last = newer(t, s.keys, "default", last.Revision)
		}
		if d := on(t, last).Decide(lists("x", "y")); d.Effect != effect || d.Effect == access.Allow && d.Rule != "parameters/disk/node" || d.Effect == access.Deny && !strings.Contains(d.Reason, "PipePolicy parameters/disk, ") {
			t.Errorf("%s: %+v", method, d)
		}
		if policies != "" && last.PolicyRevision != policies {
			t.Errorf("what is for nodes changed the revision of admission: %s, and it was %s", last.PolicyRevision, policies)
		}
		policies = last.PolicyRevision
	}
}

func refusesBoth(t *testing.T, s *signed) {
	t.Helper()
	keys := s.keys
	mine := namespace(t, "mine", driver)
	p := diskPolicy(mine)
	b := s.publishes(t, p)
	status := p.Status.PolicyStatus
	if b.Audience != "default" || b.PolicyRevision != status.Revision || newer(t, keys, "gpu", 0).Audience != "gpu" {
		t.Fatalf("bundle for %s of %s, and the status says %s", b.Audience, b.PolicyRevision, status.Revision)
	}
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBundlesPublished)
	if c.Reason != "Published" || !strings.Contains(c.Message, fmt.Sprintf("default at revision %d", b.Revision)) || !strings.Contains(c.Message, "gpu at revision") {
		t.Errorf("condition %+v", c)
	}

	live := on(t, b)
	if d := live.Decide(lists(mine, driver)); d.Effect != access.Allow || d.Rule != "disk/node" {
		t.Errorf("the subject: %+v", d)
	}
	pods := refused(t, at(t).api.Client.Create(t.Context(), pod(mine, "", diskPipe)), "PG010").Message
	at := named12.FindString(pods)
	if at == "" || !strings.HasPrefix(status.Revision, at) || !strings.Contains(pods, "disk") {
		t.Errorf("admission names %q, and the status %s: %s", at, status.Revision, pods)
	}
	for name, call := range map[string]access.Call{
		"another service account": lists(mine, "default"), "another namespace": lists("default", driver), "nobody": {Group: "disk", Version: "v1", Operation: "ListDiskIDs"},
	} {
		d := live.Decide(call)
		if want := fmt.Sprintf("PipePolicy disk, policy %s, revision %d: ", at, b.Revision); d.Effect != access.Deny || !strings.HasPrefix(d.Reason, want) {
			t.Errorf("%s: %+v, want %s", name, d, want)
		}
	}

	// What is taken back at admission is taken back on nodes.
	changed(t, p, func() { p.Spec.Subjects[0].ServiceAccounts = []string{"default"} })
	after := newer(t, keys, "default", b.Revision)
	changedTo := become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue)
	for after.PolicyRevision != changedTo.Revision { // admission's own activation may come between
		after = newer(t, keys, "default", after.Revision)
	}
	live = on(t, after)
	if d := live.Decide(lists(mine, driver)); d.Effect != access.Deny {
		t.Errorf("who was the subject: %+v", d)
	}
	if d := live.Decide(lists(mine, "default")); d.Effect != access.Allow {
		t.Errorf("who is the subject: %+v", d)
	}
}

func undone(t *testing.T, s *signed) {
	t.Helper()
	b := s.publishes(t, diskPolicy(namespace(t, "mine", driver)))
	stranger := bundletest.NewKey(t)
	forged := b
	forged.Revision = bundle.LatestRevision(forged.IssuedAt)
	text, err := bundle.Build(forged, stranger)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func(o *corev1.ConfigMap) error
	}{
		{"deleted", func(o *corev1.ConfigMap) error { return at(t).api.Client.Delete(t.Context(), o) }},
		{"forged", func(o *corev1.ConfigMap) error {
			o.BinaryData["bundle.tar.gz"] = text
			return at(t).api.Client.Update(t.Context(), o)
		}},
		{"cut off", func(o *corev1.ConfigMap) error {
			o.BinaryData["bundle.tar.gz"] = o.BinaryData["bundle.tar.gz"][:100]
			return at(t).api.Client.Update(t.Context(), o)
		}},
		{"emptied", func(o *corev1.ConfigMap) error {
			o.BinaryData = nil
			return at(t).api.Client.Update(t.Context(), o)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := configMap("default")
			if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if err := c.do(o); err != nil {
				t.Fatal(err)
			}
			next := newer(t, s.keys, "default", b.Revision)
			if next.PolicyRevision != b.PolicyRevision || next.Revision > b.Revision+3600 {
				t.Errorf("revision %d of %s follows %d of %s", next.Revision, next.PolicyRevision, b.Revision, b.PolicyRevision)
			}
			b = next
		})
	}
}

func otherKeys(t *testing.T, s *signed) {
	t.Helper()
	old := s.keys
	mine := namespace(t, "mine", driver)
	p := diskPolicy(mine)
	first := s.publishes(t, p)

	s.rotate(t)
	keys := s.keys
	second := newer(t, keys, "default", first.Revision)
	if second.PolicyRevision != first.PolicyRevision {
		t.Errorf("the policies are %s, and were %s", second.PolicyRevision, first.PolicyRevision)
	}
	text, err := at(t).raw(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := old.Verify(text); bundle.ReasonOf(err) != bundle.ReasonKey {
		t.Errorf("a node that has not got the new key says %v", err)
	}

	for name, broken := range map[string]string{"text": "hunter2\n", "nothing": ""} {
		before := newer(t, keys, "default", 0)
		good, err := os.ReadFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		harness.Replace(t, s.file, broken)
		changed(t, p, func() { p.Spec.Subjects[0].Containers = []string{"c" + strings.ToLower(name)} })
		status := become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionFalse)
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBundlesPublished)
		if c.Reason != "KeyUnfit" || !strings.Contains(c.Message, s.file) || strings.Contains(c.Message, "hunter2") {
			t.Errorf("%s: condition %+v", name, c)
		}
		become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue) // admission does not need the key
		refused(t, at(t).api.Client.Create(t.Context(), pod(mine, "", diskPipe)), "PG010")
		for _, replica := range s.Replicas {
			if err := replica.Ready(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after := newer(t, keys, "default", 0); after.Revision != before.Revision {
			t.Errorf("%s: revision %d was published after %d", name, after.Revision, before.Revision)
		}
		harness.Replace(t, s.file, string(good))
		newer(t, keys, "default", before.Revision)
		become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionTrue)
	}
}

func touchesNoOther(t *testing.T, s *signed) {
	t.Helper()
	newer(t, s.keys, "default", 0)
	own := newClient(t, s.Config)
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "pipeguard-bundle-others"}}
	created(t, other)
	deleted(t, other)
	elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pipeguard-bundle-default"}}
	for name, err := range map[string]error{
		"read another":      own.Get(t.Context(), client.ObjectKeyFromObject(other), &corev1.ConfigMap{}),
		"change another":    own.Update(t.Context(), other.DeepCopy()),
		"delete its own":    own.Delete(t.Context(), configMap("default")),
		"list them":         own.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(cluster.Namespace)),
		"create one beyond": own.Create(t.Context(), elsewhere),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
