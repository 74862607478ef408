//go:build !windows

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// node makes a Node and returns a client with the node's certificate.
func node(t *testing.T, name string) (*corev1.Node, client.Client) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	created(t, n)
	deleted(t, n)
	return n, user(t, "system:node:"+name, "system:nodes")
}

func user(t *testing.T, name string, groups ...string) client.Client {
	t.Helper()
	config, err := at(t).api.User(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, config)
}

// mirror is the object that a kubelet makes for a static pod.
func mirror(n *corev1.Node, namespace string) *corev1.Pod {
	p := pod(namespace, "", pipe)
	p.Spec.NodeName = n.Name
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "1b2c"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID, Controller: new(true)}}
	return p
}

// mayCreate lets a user create pods in a namespace.
func mayCreate(t *testing.T, namespace, user string) {
	t.Helper()
	role := named(&rbacv1.Role{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}}}}, namespace)
	created(t, role, named(&rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, namespace))
}

// Admission cannot stop a static pod: it runs whether or not its mirror is stored. Refusing the mirror would hide it.
func TestTheMirrorOfAStaticPodIsStoredAndReported(t *testing.T) {
	webhook := guarded(t)
	others := namespace(t, "others")
	n, kubelet := node(t, "win-1")
	p := mirror(n, others)
	if err := kubelet.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	event := audited(t, func(e *cluster.AuditEvent) bool { return e.ObjectRef.Namespace == others && e.ObjectRef.Name == p.Name })
	if event.Annotations["pods.pipeguard.dev/static-pod"] != "true" || event.Annotations["pods.pipeguard.dev/codes"] != "PG001" {
		t.Errorf("audit annotations: %v", event.Annotations)
	}
	records := recordsOf(t, webhook, others, 1)
	if len(records) != 1 || records[0].Decision.Reason != "static pod" || records[0].Who.User.Name != "system:node:win-1" {
		t.Errorf("records: %+v", records)
	}
}

func TestTheMirrorAnnotationIsNoWayIn(t *testing.T) {
	guarded(t)
	others := namespace(t, "others")
	n, _ := node(t, "win-2")
	mayCreate(t, others, "mallory")
	mayCreate(t, others, "system:node:win-2")
	for name, c := range map[string]struct {
		user client.Client
		node string
	}{
		"an administrator":                   {at(t).api.Client, n.Name},
		"an administrator, for another node": {at(t).api.Client, "win-3"},
		"a user":                             {user(t, "mallory"), n.Name},
		"a node's name without the group":    {user(t, "system:node:win-2"), n.Name},
	} {
		t.Run(name, func(t *testing.T) {
			p := mirror(n, others)
			p.OwnerReferences, p.Spec.NodeName = nil, c.node
			refused(t, c.user.Create(t.Context(), p), "PG001")
		})
	}
	// The API server itself does not believe in a node without a node's name.
	if err := user(t, "mallory", "system:nodes").Create(t.Context(), mirror(n, others)); err == nil {
		t.Error("stored for a member of system:nodes that is no node")
	}
}

func TestANodeMayOnlyReportItsOwnStaticPods(t *testing.T) {
	guarded(t)
	others := namespace(t, "others")
	n, _ := node(t, "win-4")
	_, another := node(t, "win-5")
	if err := another.Create(t.Context(), mirror(n, others)); err == nil {
		t.Error("a node stored another node's mirror pod")
	}
}
