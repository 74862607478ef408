package clustercmd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func TestAStrictClusterIsEnforcedEverywhere(t *testing.T) {
	f := strict()
	report, got := f.survey(t)
	if got.code != cli.ExitYes || report.Verdict != verdictEnforced || got.errOut != "" {
		t.Fatalf("exit code %d, verdict %s: %s%s", got.code, report.Verdict, got.out, got.errOut)
	}
	if len(report.Checks) != 9 || report.Namespace != "guard" || report.Nodes.Current != 1 || report.Modes.HostPaths != "Deny" {
		t.Errorf("got %s", got.out)
	}
	for _, r := range f.requests {
		if !strings.HasPrefix(r, "GET ") && r != "POST "+atPods+"?dryRun=All" {
			t.Errorf("it asks %s", r)
		}
	}
	text := f.run(t, "status")
	if text.code != cli.ExitYes || !strings.Contains(text.out, "The guard is enforced everywhere.") || strings.Count(text.out, " ok ") != 9 {
		t.Errorf("exit code %d: %s", text.code, text.out)
	}
}

// Where the rights lack, it is unknown whether the guard is enforced, and a fault that is found is one all the same.
func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	for path, names := range map[string][]string{
		atConfigurations: {"objects", "changes"}, atDeployment: {"replicas", "modes", "floor"}, atParameters: {"modes"}, atLeases: {"replicas"},
		atPolicies: {"policies"}, atModules: {"policies"}, atReports: {"existing"}, atClusterReports: {"existing"}, atGuardedNodes: {"nodes"}, atNodes: {"nodes"}, atConfigMaps: {"nodes"},
	} {
		f := strict()
		f.answers[path] = lacking("it")
		args := []string{"status", "--guard-namespace", "guard"}
		if path == atConfigurations { // which name the service
			f.objects["/apis/apps/v1/namespaces/guard/deployments/pipeguard-webhook"] = f.objects[atDeployment]
		}
		got := f.run(t, args...)
		if got.code != cli.ExitBadInput || !strings.Contains(got.errOut, "some checks could not be made") || !strings.Contains(got.out, "not permitted: it is forbidden") {
			t.Errorf("%s: exit code %d, %s%s", path, got.code, got.out, got.errOut)
		}
		report, _ := f.survey(t)
		for _, name := range names {
			if c := report.of(t, name); path != atConfigurations && c.State != stateUnknown {
				t.Errorf("%s: %s: %s", path, name, c)
			}
		}
		f.lists[atReports] = []any{reportOf("shop", v1alpha1.ReportSummary{Deny: 1})}
		delete(f.answers, atReports)
		if got := f.run(t, args...); got.code != cli.ExitNo && path != atClusterReports {
			t.Errorf("%s: exit code %d with a fault", path, got.code)
		}
	}
}

// What an API server says acts on no terminal.
func TestNothingThatIsReadActsOnATerminal(t *testing.T) {
	f := strict()
	const bad = "x\x1b]0;y\a\u202e  z"
	get[*v1alpha1.GuardedNode](t, f, atGuardedNodes, 0).Message = bad
	get[*v1alpha1.GuardedNode](t, f, atGuardedNodes, 0).State = bad
	get[*v1alpha1.PipePolicy](t, f, atPolicies, 0).Status.Conditions[0] = metav1.Condition{Type: "Ready", Status: bad, Reason: bad, Message: bad}
	get[*v1alpha1.PipePolicy](t, f, atPolicies, 0).Name = bad
	get[configurationOf](t, f, atConfigurations, 0).Name = bad
	f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) { w.Name = bad + w.Name })
	get[*coordinationv1.Lease](t, f, atLeases, 1).Annotations[v1alpha1.AnnotationRevision] = bad
	f.lists[atReports] = []any{reportOf(bad, v1alpha1.ReportSummary{Deny: 1, Audit: 1}, v1alpha1.ReportResult{Rule: "PG010", Effect: "audit", Policies: []string{bad}})}
	f.answers[atPods] = failure(403, metav1.StatusReasonForbidden, bad)
	f.answers[atModules] = lacking(bad)
	for _, format := range []string{"text", "json"} {
		got := f.run(t, "status", "-o", format)
		if got.code != cli.ExitNo || strings.ContainsAny(got.out+got.errOut, "\x1b\a\u202e") {
			t.Errorf("%s: exit code %d, %q", format, got.code, got.out+got.errOut)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	answers := func(text string, status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}
	}
	long := strings.Repeat("x", 2000)
	for want, handler := range map[string]http.HandlerFunc{
		"more than 1000 bytes": answers(`{"items":["`+long+`"]}`, http.StatusOK),
		"than 1000 bytes":      answers(`{"kind":"Status","apiVersion":"v1","message":"`+long+`"}`, http.StatusForbidden),
		"more than 100 object": answers(`{"metadata":{"continue":"again"},"items":[`+strings.Repeat("{},", 59)+`{}]}`, http.StatusOK),
		"more than 100 objec":  answers(`{"metadata":{"continue":"again"},"items":[]}`, http.StatusOK),
	} {
		server := httptest.NewServer(handler)
		a, err := newAPI(&rest.Config{Host: server.URL}, bounds{bytes: 1000, items: 100})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := a.findRelease(t.Context(), ""); err != nil || r.unread == nil || !strings.Contains(r.unread.Error(), want) {
			t.Errorf("want %q, got %v, %v", want, r.unread, err)
		}
		server.Close()
	}
	broken := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	if got := runOn(t, broken, "status"); got.code != cli.ExitBadInput || got.errOut == "" {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
	}
}

func TestTheClusterIsNamedAsKubectlNamesIt(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("USERPROFILE", t.TempDir())
	f := strict()
	for want, args := range map[string][]string{
		`context "none" does not exist`: {"--context", "none"},
		`namespace "a/b"`:               {"-n", "a/b"},
		`namespace ".."`:                {"--guard-namespace", ".."},
	} {
		if got := f.run(t, append([]string{"status"}, args...)...); got.code != cli.ExitBadInput || !strings.Contains(got.errOut, want) {
			t.Errorf("%q: exit code %d, %s", args, got.code, got.errOut)
		}
	}
	if got := f.run(t, "status", "-n", "ops"); !strings.Contains(got.out, "namespace ops") {
		t.Errorf("got %s", got.out)
	}
	if _, err := (&connection{kubeconfig: "missing"}).open(""); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v", err)
	}
	if _, err := (&connection{}).open(""); err == nil || !strings.Contains(err.Error(), "there is no kubeconfig") {
		t.Errorf("got %v", err)
	}
}

// A cluster as the chart installs it, shortly before the modes are set to Deny.
func TestTheStatusForPeople(t *testing.T) {
	subject := func(name string) v1alpha1.ReportSubject {
		return v1alpha1.ReportSubject{Kind: "Pod", Namespace: "shop", Name: name}
	}
	f := strict()
	get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"] = "{}"
	get[*v1alpha1.PipePolicy](t, f, atPolicies, 0).Spec.Admission.Action = v1alpha1.ActionAudit
	f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist}},
		}
	})
	f.lists[atReports] = []any{reportOf("shop", v1alpha1.ReportSummary{Deny: 1, Audit: 3},
		v1alpha1.ReportResult{Rule: "PG003", Effect: "deny", Field: "a", Subject: subject("web")},
		v1alpha1.ReportResult{Rule: "PG005", Effect: "audit", Field: "b", Subject: subject("agent")},
		v1alpha1.ReportResult{Rule: "PG005", Effect: "audit", Field: "c", Subject: subject("agent-2")},
		v1alpha1.ReportResult{Rule: "PG010", Effect: "audit", Field: "d", Subject: subject("web"), Policies: []string{"disks"}})}
	f.lists[atNodes] = append(f.lists[atNodes], &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "win2"}})
	got := f.run(t, "status")
	if got.code != cli.ExitNo || got.errOut != "" {
		t.Errorf("exit code %d, %s", got.code, got.errOut)
	}
	clitest.Golden(t, "status.txt", got.out)
}
