package chart_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestTheNodesPodsMayReportAndListAKubeletsPodsAndNothingElse(t *testing.T) {
	for rendering, d := range nodes(t) {
		all, account := renderings(t)[rendering], d.Spec.Template.Spec.ServiceAccountName
		want := []string{"pipeguard.dev/guardednodes: get create update", "/nodes/pods: get"}
		if rendering == "everything" { // whose configuration asks the kubelet with another credential
			want = want[:1]
		}
		role := decode[rbacv1.ClusterRole](t, one(t, all, "ClusterRole", d.Name))
		if diff := cmp.Diff(want, rights(role.Rules)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rendering, diff)
		}
		for _, o := range all {
			if !strings.HasSuffix(o.kind(), "RoleBinding") || !isOfNode(o) && !strings.Contains(text(t, o), account) {
				continue
			}
			b := decode[rbacv1.ClusterRoleBinding](t, o)
			want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: d.Namespace}}
			if diff := cmp.Diff(want, b.Subjects); diff != "" || o.id() != "ClusterRoleBinding/"+d.Name || b.RoleRef.Name != d.Name {
				t.Errorf("%s: %s grants %s (-want +got):\n%s", rendering, o.id(), b.RoleRef.Name, diff)
			}
		}
	}
}

func TestTheTokenOfTheNodesIsShortLivedAndForTheAPIServer(t *testing.T) {
	for rendering, d := range nodes(t) {
		c := d.Spec.Template.Spec.Containers[0]
		sources := d.Spec.Template.Spec.Volumes[1].Projected.Sources
		if len(sources) != 2 || sources[0].ServiceAccountToken == nil || sources[1].ConfigMap == nil {
			t.Fatalf("%s: %+v", rendering, sources)
		}
		if s := sources[0].ServiceAccountToken; s.Path != "token" || s.Audience != "" || *s.ExpirationSeconds != 3600 {
			t.Errorf("%s: %+v", rendering, s)
		}
		if s := sources[1].ConfigMap; s.Name != "kube-root-ca.crt" || len(s.Items) != 1 || s.Items[0].Path != "ca.crt" {
			t.Errorf("%s: %+v", rendering, s)
		}
		if m := c.VolumeMounts[1]; m.Name != "credentials" || m.MountPath != "/pipeguard/credentials" || !m.ReadOnly {
			t.Errorf("%s: %+v", rendering, m)
		}
		if len(c.Env) != 1 || c.Env[0].Name != "NODE_NAME" || c.Env[0].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
			t.Errorf("%s: %+v", rendering, c.Env)
		}
	}
}

// What the expressions do is tested with a real API server.
func TestReportsAreJudgedByTheAPIServerItself(t *testing.T) {
	for rendering, d := range nodes(t) {
		all := renderings(t)[rendering]
		p := decode[admissionregistrationv1.ValidatingAdmissionPolicy](t, one(t, all, "ValidatingAdmissionPolicy", d.Name+"-reports"))
		if *p.Spec.FailurePolicy != admissionregistrationv1.Fail || len(p.Spec.MatchConditions) > 0 ||
			!strings.Contains(p.Spec.Validations[0].Expression, "'system:serviceaccount:"+d.Namespace+":"+d.Name+"'") {
			t.Errorf("%s: %+v", rendering, p.Spec)
		}
		r := p.Spec.MatchConstraints.ResourceRules
		if len(r) != 1 || cmp.Diff([]string{"guardednodes"}, r[0].Resources) != "" || len(r[0].Operations) != 2 {
			t.Errorf("%s: %+v", rendering, r)
		}
		b := decode[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, one(t, all, "ValidatingAdmissionPolicyBinding", d.Name+"-reports"))
		if b.Spec.PolicyName != p.Name || b.Spec.MatchResources != nil || cmp.Diff([]admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}, b.Spec.ValidationActions) != "" {
			t.Errorf("%s: %+v", rendering, b.Spec)
		}
	}
}

func TestWithoutReportsAndIdentityNodesHaveNoToken(t *testing.T) {
	all := render(t, set("node.enabled=true", "node.reports.enabled=false", "node.identity.enabled=false")...)
	d := decode[appsv1.DaemonSet](t, one(t, all, "DaemonSet", "pipeguard-node"))
	c := d.Spec.Template.Spec.Containers[0]
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Projected != nil {
			t.Errorf("the volume %+v", v)
		}
	}
	if args := strings.Join(c.Args, " "); len(c.VolumeMounts) != 1 || strings.Contains(args, "report") || strings.Contains(args, "identity") || strings.Contains(args, "-metrics-bind-address") {
		t.Errorf("%+v", c)
	}
	for _, o := range all {
		if isOfNode(o) && (strings.Contains(o.kind(), "Role") || strings.HasPrefix(o.kind(), "Validating")) {
			t.Errorf("%s", o.id())
		}
	}
}

// Its own node asks the service, and nobody else unless somebody says so.
func TestTheServiceCanBeAskedByItsNode(t *testing.T) {
	for value, want := range map[string]string{"": "127.0.0.1:9189", ":9187": ":9187", "127.0.0.1:9999": "127.0.0.1:9999"} {
		d := decode[appsv1.DaemonSet](t, one(t, render(t, set("node.enabled=true", "node.metricsAddress="+value)...), "DaemonSet", "pipeguard-node"))
		c := d.Spec.Template.Spec.Containers[0]
		if args := strings.Join(c.Args, " "); !strings.Contains(args+" ", "-metrics-bind-address="+want+" ") {
			t.Errorf("%q: %s", value, args)
		}
		if value == "" && len(c.Ports) > 0 {
			t.Errorf("a port for others: %+v", c.Ports)
		}
	}
}
