package chart_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestStandardReportsComeWithTheirRightsAlone(t *testing.T) {
	for kind, want := range map[string][]string{
		"PolicyReport": {
			"wgpolicyk8s.io/policyreports,clusterpolicyreports: get list create update delete",
			"rbac.authorization.k8s.io/clusterroles[pipeguard-webhook-reports-policyreport]: get",
		},
		"OpenReports": {
			"openreports.io/reports,clusterreports: get list create update delete",
			"rbac.authorization.k8s.io/clusterroles[pipeguard-webhook-reports-openreports]: get",
		},
	} {
		all := render(t, set("reports.standard="+kind)...)
		name := "pipeguard-webhook-reports-" + strings.ToLower(kind)
		role := decode[rbacv1.ClusterRole](t, one(t, all, "ClusterRole", name))
		if diff := cmp.Diff(want, rights(role.Rules)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
		binding := decode[rbacv1.ClusterRoleBinding](t, one(t, all, "ClusterRoleBinding", name))
		subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "pipeguard-webhook", Namespace: namespace}}
		if diff := cmp.Diff(subjects, binding.Subjects); diff != "" || binding.RoleRef.Name != name || binding.RoleRef.Kind != "ClusterRole" {
			t.Errorf("%s: bound %+v", kind, binding)
		}
		config := webhookConfig(t, all, "pipeguard-webhook")
		if got := config.at("reports", "standard"); got != kind {
			t.Errorf("the webhook writes %v, want %s", got, kind)
		}
		if got := config.at("reports", "clusterRole"); got != name {
			t.Errorf("reports belong to %v, want %s", got, name)
		}
		if got := reportRoles(all); got != 1 {
			t.Errorf("%s: %d roles about standard reports", kind, got)
		}
	}
	if got := reportRoles(render(t)); got != 0 {
		t.Errorf("%d roles about standard reports that nobody wants", got)
	}
}

// reportRoles counts roles with rights on standard reports.
func reportRoles(all []object) (n int) {
	for _, o := range all {
		if o.kind() == "ClusterRole" && strings.Contains(o.id(), "pipeguard-webhook-reports-") {
			n++
		}
	}
	return n
}

func TestTheKindOfStandardReportsIsSetWithItsRights(t *testing.T) {
	for _, args := range [][]string{
		set("config.reports.standard=OpenReports"),
		set("reports.standard=PolicyReport", "config.reports.standard=OpenReports"),
		set("reports.standard=Reports"),
		set("reports.standard="),
	} {
		if out, err := template(t, args...); err == nil {
			t.Errorf("%q is rendered:\n%.200s", args, out)
		}
	}
}
