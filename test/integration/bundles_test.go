//go:build !windows

package integration

import (
	"context"
	"errors"
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
	bundlenode "github.com/pipeguard/pipeguard/internal/bundle/node"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/request"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// signed is the shared release while it makes bundles for the pools default and gpu.
type signed struct {
	*cluster.Release
	t    *testing.T
	file string // of the key
}

// signs upgrades the shared release to one that makes bundles, with two replicas, until the test is over.
func signs(t *testing.T) *signed {
	t.Helper()
	ungoverned(t)
	ctx := context.WithoutCancel(t.Context())
	chart, err := cluster.RenderChart(ctx, shared.tools, cluster.ChartDir(), "bundles.enabled=true", "bundles.pools={default,gpu}")
	if err != nil {
		t.Fatal(err)
	}
	s := &signed{Release: guarded(t), t: t, file: filepath.Join(t.TempDir(), "bundle.key")}
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
				if err := shared.api.Delete(ctx, o.DeepCopy()); err != nil {
					t.Error(err)
				}
			}
		}
		for _, pool := range []string{"default", "gpu"} {
			if err := shared.api.Delete(ctx, configMap(pool)); err != nil {
				t.Error(err)
			}
		}
	})
	s.newKey()
	if err := s.Upgrade(ctx, chart, 2, "--bundle-key", s.file, "--bundle-pools", "default,gpu"); err != nil {
		t.Fatal(err)
	}
	return s
}

// newKey has the release sign with another key, and returns what nodes pin.
func (s *signed) newKey() bundle.Keys {
	s.t.Helper()
	key, err := bundle.NewKey()
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := key.PrivatePEM()
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(string(text))
	keys, err := bundle.ParseKeys(key.PublicPEM())
	if err != nil {
		s.t.Fatal(err)
	}
	return keys
}

func (s *signed) write(text string) {
	s.t.Helper()
	next := s.file + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, s.file)); err != nil {
		s.t.Fatal(err)
	}
}

func configMap(pool string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "pipeguard-bundle-" + pool}}
}

// raw is the bundle that is stored for a pool.
func raw(ctx context.Context, pool string) ([]byte, error) {
	o := configMap(pool)
	err := shared.api.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
	return o.BinaryData["bundle.tar.gz"], err
}

// newer waits for a bundle that these keys have signed, with a revision above another.
func newer(t *testing.T, keys bundle.Keys, pool string, than uint64) (b bundle.Bundle) {
	t.Helper()
	eventually(t, fmt.Sprintf("a bundle for %s above %d", pool, than), func(ctx context.Context) error {
		text, err := raw(ctx, pool)
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
func on(t *testing.T, b bundle.Bundle) *bundlenode.Live {
	t.Helper()
	live, err := bundlenode.Try(t.Context(), bundlenode.Options{
		Known:   []acl.API{{Group: "disk", Version: "v1", Operations: []string{"ListDiskIDs"}}},
		Modules: request.Modules, Policy: request.Options(policy.Options{}),
	}, b)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// lists is a call of ListDiskIDs by a pod's container.
func lists(namespace, account string) acl.Request {
	return acl.Request{Group: "disk", Version: "v1", Operation: "ListDiskIDs", Caller: acl.Caller{
		Assurance: "pod", User: "S-1-5-93-2-1", Namespace: namespace, ServiceAccount: account, Pod: "x", Container: "app", Image: image,
	}}
}

// named12 is a revision of policies as refusals write it.
var named12 = regexp.MustCompile(`sha256:[0-9a-f]{12}`)

func diskPolicy(namespace string) *v1alpha1.PipePolicy {
	return pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(namespace))
}

func TestOneObjectRefusesThePodAndTheCallUnderOneRevision(t *testing.T) {
	s := signs(t)
	keys := s.newKey()
	mine := namespace(t, "mine", driver)
	p := diskPolicy(mine)
	ready(t, p)
	status := become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionTrue)

	b := newer(t, keys, "default", 0)
	if b.Audience != "default" || b.PolicyRevision != status.Revision || newer(t, keys, "gpu", 0).Audience != "gpu" {
		t.Fatalf("bundle for %s of %s, and the status says %s", b.Audience, b.PolicyRevision, status.Revision)
	}
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBundlesPublished)
	if c.Reason != "Published" || !strings.Contains(c.Message, fmt.Sprintf("default at revision %d", b.Revision)) || !strings.Contains(c.Message, "gpu at revision") {
		t.Errorf("condition %+v", c)
	}

	live := on(t, b)
	if d := live.Decide(lists(mine, driver)); d.Effect != acl.Allow || d.Rule != "disk/node" {
		t.Errorf("the subject: %+v", d)
	}
	pods := refused(t, shared.api.Client.Create(t.Context(), pod(mine, "", diskPipe)), "PG010").Message
	at := named12.FindString(pods)
	if at == "" || !strings.HasPrefix(status.Revision, at) || !strings.Contains(pods, "disk") {
		t.Errorf("admission names %q, and the status %s: %s", at, status.Revision, pods)
	}
	for name, call := range map[string]acl.Request{
		"another service account": lists(mine, "default"), "another namespace": lists("default", driver), "nobody": {Group: "disk", Version: "v1", Operation: "ListDiskIDs"},
	} {
		d := live.Decide(call)
		if want := fmt.Sprintf("PipePolicy disk, policy %s, revision %d: ", at, b.Revision); d.Effect != acl.Deny || !strings.HasPrefix(d.Reason, want) {
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
	if d := live.Decide(lists(mine, driver)); d.Effect != acl.Deny {
		t.Errorf("who was the subject: %+v", d)
	}
	if d := live.Decide(lists(mine, "default")); d.Effect != acl.Allow {
		t.Errorf("who is the subject: %+v", d)
	}
}

func TestWhatOthersDoToABundleIsUndone(t *testing.T) {
	s := signs(t)
	keys := s.newKey()
	p := diskPolicy(namespace(t, "mine", driver))
	ready(t, p)
	become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionTrue)
	b := newer(t, keys, "default", 0)
	stranger, err := bundle.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	forged := b
	forged.Revision = 1 << 62
	text, err := bundle.Build(forged, stranger)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func(o *corev1.ConfigMap) error
	}{
		{"deleted", func(o *corev1.ConfigMap) error { return shared.api.Client.Delete(t.Context(), o) }},
		{"forged", func(o *corev1.ConfigMap) error {
			o.BinaryData["bundle.tar.gz"] = text
			return shared.api.Client.Update(t.Context(), o)
		}},
		{"cut off", func(o *corev1.ConfigMap) error {
			o.BinaryData["bundle.tar.gz"] = o.BinaryData["bundle.tar.gz"][:100]
			return shared.api.Client.Update(t.Context(), o)
		}},
		{"emptied", func(o *corev1.ConfigMap) error {
			o.BinaryData = nil
			return shared.api.Client.Update(t.Context(), o)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := configMap("default")
			if err := shared.api.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if err := c.do(o); err != nil {
				t.Fatal(err)
			}
			next := newer(t, keys, "default", b.Revision)
			// Of the same policy, or of the one that decides now: objects of before may be going still.
			at := become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue)
			if next.PolicyRevision != b.PolicyRevision && next.PolicyRevision != at.Revision || next.Revision > b.Revision+3600 {
				t.Errorf("revision %d of %s follows %d of %s", next.Revision, next.PolicyRevision, b.Revision, b.PolicyRevision)
			}
			b = next
		})
	}
}

func TestAnotherKeySignsAnotherRevisionAndABrokenOneNone(t *testing.T) {
	s := signs(t)
	old := s.newKey()
	mine := namespace(t, "mine", driver)
	p := diskPolicy(mine)
	ready(t, p)
	become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionTrue)
	first := newer(t, old, "default", 0)

	keys := s.newKey()
	second := newer(t, keys, "default", first.Revision)
	if second.PolicyRevision != first.PolicyRevision {
		t.Errorf("the policies are %s, and were %s", second.PolicyRevision, first.PolicyRevision)
	}
	text, err := raw(t.Context(), "default")
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
		s.write(broken)
		changed(t, p, func() { p.Spec.Subjects[0].Containers = []string{"c" + strings.ToLower(name)} })
		status := become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionFalse)
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBundlesPublished)
		if c.Reason != "KeyUnfit" || !strings.Contains(c.Message, s.file) || strings.Contains(c.Message, "hunter2") {
			t.Errorf("%s: condition %+v", name, c)
		}
		become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue) // admission does not need the key
		refused(t, shared.api.Client.Create(t.Context(), pod(mine, "", diskPipe)), "PG010")
		for _, replica := range s.Replicas {
			if err := replica.Ready(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after := newer(t, keys, "default", 0); after.Revision != before.Revision {
			t.Errorf("%s: revision %d was published after %d", name, after.Revision, before.Revision)
		}
		s.write(string(good))
		newer(t, keys, "default", before.Revision)
		become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionTrue)
	}
}

func TestTheWebhookMayTouchNoOtherConfigMap(t *testing.T) {
	s := signs(t)
	keys := s.newKey()
	newer(t, keys, "default", 0)
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
