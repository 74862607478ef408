//go:build !windows

package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
	"github.com/pipeguard/pipeguard/test/routes"
)

// hostProcesses are the ways a pod can ask to be one with its node.
func hostProcesses() map[string]struct {
	change func(*corev1.PodTemplateSpec)
	code   string
} {
	hostProcess := &corev1.WindowsSecurityContextOptions{HostProcess: new(true), RunAsUserName: new(`NT AUTHORITY\SYSTEM`)}
	return map[string]struct {
		change func(*corev1.PodTemplateSpec)
		code   string
	}{
		"the pod": {func(t *corev1.PodTemplateSpec) {
			t.Spec.HostNetwork = true
			t.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess}
		}, "PG005"},
		"a container": {func(t *corev1.PodTemplateSpec) {
			t.Spec.HostNetwork = true
			t.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: hostProcess}
		}, "PG005"},
		"an annotation": {func(t *corev1.PodTemplateSpec) {
			t.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"}
		}, "PG006"},
		"an annotation in capitals": {func(t *corev1.PodTemplateSpec) {
			t.Annotations = map[string]string{"Microsoft.com/HostProcess-Container": "true"}
		}, "PG006"},
	}
}

func TestHostProcessIsWarnedOf(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for name, c := range hostProcesses() {
		for _, w := range append(routes.Workloads(), bare()) {
			made := template(driver)
			c.change(&made)
			admin, warned := warnings(t)
			if err := admin.Create(t.Context(), named(w.Make(made), others)); err != nil {
				t.Errorf("%s, %s: %v", w.Kind, name, err)
			}
			if len(warned.texts) != 1 || !strings.HasPrefix(warned.texts[0], c.code+": ") || len(warned.texts[0]) > 120 {
				t.Errorf("%s, %s: warnings %q", w.Kind, name, warned.texts)
			}
		}
	}
}

// bare is a pod, as a workload that is its own template.
func bare() routes.Workload {
	return routes.Workload{Kind: "Pod", Make: func(t corev1.PodTemplateSpec) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: t.Annotations}, Spec: t.Spec}
	}}
}

// effects returns the effects that the API server's audit log has of a namespace, each once.
func effects(t *testing.T, namespace string) []string {
	t.Helper()
	events, err := at(t).api.Audit.Events(func(e *cluster.AuditEvent) bool { return e.ObjectRef != nil && e.ObjectRef.Namespace == namespace })
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		for k, v := range e.Annotations {
			if strings.HasSuffix(k, ".pipeguard.dev/effect") {
				out = append(out, v)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestHostProcessAndEqualPowerCanBeRefused(t *testing.T) {
	standalone(t, strings.Replace(parameters, "hostProcess: Warn", "hostProcess: Deny\nequalPower: Deny", 1))
	others := namespace(t, "others", driver)
	for _, w := range append(routes.Workloads(), bare()) {
		status := refused(t, at(t).api.Client.Create(t.Context(), named(w.Make(template(driver, `C:\Windows`)), others)), "PG008")
		field := "spec.containers[0].volumeMounts[0]"
		if w.Field != "" {
			field = w.Field + "." + field
		}
		if diff := cmp.Diff([]string{"PG008 " + field}, causes(status)); diff != "" {
			t.Errorf("%s: causes (-want +got):\n%s", w.Kind, diff)
		}
		for name, c := range hostProcesses() {
			made := template(driver)
			c.change(&made)
			status := refused(t, at(t).api.Client.Create(t.Context(), named(w.Make(made), others)), c.code)
			if got := causes(status); len(got) != 1 || !strings.HasPrefix(got[0], c.code+" "+w.Field) {
				t.Errorf("%s, %s: causes %q", w.Kind, name, got)
			}
		}
	}
	refused(t, at(t).api.Client.Create(t.Context(), volume(routes.OnHost(`C:\Windows`))), "PG008")
	// An allowed namespace is allowed guarded pipes, nothing else.
	if err := at(t).api.EnsureNamespace(t.Context(), drivers, driver); err != nil {
		t.Fatal(err)
	}
	refused(t, at(t).api.Client.Create(t.Context(), pod(drivers, driver, `C:\Windows`)), "PG008")
}

func TestHostProcessAndEqualPowerCanBeIgnored(t *testing.T) {
	standalone(t, strings.Replace(parameters, "hostProcess: Warn", "hostProcess: Ignore", 1)+"equalPower: Ignore\nhostPaths: Ignore\n")
	others := namespace(t, "others", driver)
	admin, warned := warnings(t)
	for name, c := range hostProcesses() {
		made := template(driver, `C:\`)
		c.change(&made)
		if err := admin.Create(t.Context(), named(bare().Make(made), others)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, admin.Create(t.Context(), pod(others, "", pipe)), "PG001")
	if got := effects(t, others); len(warned.texts) > 0 || slices.Contains(got, "warn") || slices.Contains(got, "audit") {
		t.Errorf("warnings %q, effects %q", warned.texts, got)
	}
}

func TestEqualPowerIsRecordedAndPasses(t *testing.T) {
	webhook := guarded(t)
	others := namespace(t, "others")
	paths := []string{`C:\`, `c:/windows/System32`, `\\.\pipe\docker_engine`, `\\.\PHYSICALDRIVE0`, `\\server\C$`, `C:\etc\kubernetes`, `/etc/kubernetes/manifests`}
	admin, warned := warnings(t)
	for _, path := range paths {
		if err := admin.Create(t.Context(), pod(others, "", path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	var rules []string
	for _, r := range recordsOf(t, webhook, others, len(paths)) {
		rules = append(rules, r.Decision.Rule)
	}
	if diff := cmp.Diff(slices.Repeat([]string{"PG008"}, len(paths)), rules); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"audit"}, effects(t, others)); diff != "" || len(warned.texts) > 0 {
		t.Errorf("warnings %q, effects (-want +got):\n%s", warned.texts, diff)
	}
	v := volume(routes.Local(`C:\`))
	deleted(t, v)
	created(t, v)
}
