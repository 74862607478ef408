package clustercmd

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func TestAStrictClusterIsEnforcedEverywhere(t *testing.T) {
	f := strict()
	report, got := f.survey(t)
	if got.code != cli.ExitYes || report.Verdict != verdictEnforced || got.errOut != "" {
		t.Fatalf("exit code %d, verdict %s: %s%s", got.code, report.Verdict, got.out, got.errOut)
	}
	if len(report.Checks) != 8 || report.Namespace != "guard" || report.Nodes.Current != 1 || report.Modes.HostPaths != "Deny" {
		t.Errorf("got %s", got.out)
	}
	for _, r := range f.requests {
		if !strings.HasPrefix(r, "GET ") && r != "POST "+atPods+"?dryRun=All" {
			t.Errorf("it asks %s", r)
		}
	}
	text := f.run(t, "status")
	if text.code != cli.ExitYes || !strings.Contains(text.out, "The guard is enforced everywhere.") || strings.Count(text.out, " ok ") != 8 {
		t.Errorf("exit code %d: %s", text.code, text.out)
	}
}

// get returns an object of the fake to be changed.
func get[T any](t *testing.T, f *fakeAPI, path string, i int) T {
	t.Helper()
	o := f.objects[path]
	if list := f.lists[path]; o == nil {
		o = list[i]
	}
	out, ok := o.(T)
	if !ok {
		t.Fatalf("%s %d is a %T", path, i, o)
	}
	return out
}

type configurationOf = *admissionregistrationv1.ValidatingWebhookConfiguration

func TestWhereTheGuardIsNotEnforced(t *testing.T) {
	objects := func(f *fakeAPI, change func(*admissionregistrationv1.ValidatingWebhook)) {
		change(&get[configurationOf](t, f, atConfigurations, 0).Webhooks[0])
	}
	parameters := func(f *fakeAPI, text string) {
		get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"] = text
	}
	pipePolicy := func(f *fakeAPI) *v1alpha1.PipePolicy { return get[*v1alpha1.PipePolicy](t, f, atPolicies, 0) }
	node := func(f *fakeAPI) *v1alpha1.GuardedNode { return get[*v1alpha1.GuardedNode](t, f, atGuardedNodes, 0) }
	for name, c := range map[string]struct {
		change      func(*fakeAPI)
		check, want string
	}{
		"no configuration":     {func(f *fakeAPI) { f.lists[atConfigurations] = []any{} }, "objects", "the API server does not ask"},
		"no policies' webhook": {func(f *fakeAPI) { f.lists[atConfigurations] = f.lists[atConfigurations][:1] }, "changes", "not found"},
		"a selector": {func(f *fakeAPI) {
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "control-plane", Operator: "DoesNotExist"}}}
			})
		}, "objects", "a namespaceSelector leaves namespaces out: !control-plane"},
		"a selector of objects": {func(f *fakeAPI) {
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			})
		}, "objects", "an objectSelector leaves objects out: a=b"},
		"an ignored failure": {func(f *fakeAPI) {
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.FailurePolicy = new(admissionregistrationv1.Ignore)
			})
		}, "objects", "failurePolicy Ignore"},
		"a condition": {func(f *fakeAPI) {
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) { w.MatchConditions[0].Name = "not-mine" })
		}, "objects", `match condition "not-mine" is not of the release`},
		"no authority": {func(f *fakeAPI) {
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = nil })
		}, "objects", "the caBundle is empty"},
		"an address": {func(f *fakeAPI) {
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.ClientConfig.Service, w.ClientConfig.URL = nil, new("https://elsewhere.example")
			})
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) {})
		}, "objects", "it is not at the service guard/webhook"},
		"a kind that is not sent": {func(f *fakeAPI) {
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = w.Rules[1:] })
		}, "objects", "CREATE of pods is not sent"},
		"an operation that is not sent": {func(f *fakeAPI) {
			objects(f, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.Rules[3].Operations = []admissionregistrationv1.OperationType{"CREATE"}
			})
		}, "objects", "UPDATE of deployments.apps is not sent"},
		"another writer": {func(f *fakeAPI) {
			get[configurationOf](t, f, atConfigurations, 0).ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "helm", FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{".":{},"k:{\"name\":\"a\"}":{"f:rules":{}}}}`)},
				{Manager: "kubectl-edit", FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:matchConditions":{}}}}`)},
			}
		}, "objects", "was written by more than one: helm, kubectl-edit"},
		"an admitted probe": {func(f *fakeAPI) { delete(f.answers, atPods) }, "probe", "was admitted"},
		"a probe without an answer": {func(f *fakeAPI) {
			f.answers[atPods] = failure(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "pods.pipeguard.dev": connection refused`)
		}, "probe", "connection refused"},
		"a probe without a decision": {func(f *fakeAPI) {
			f.answers[atPods] = failure(403, metav1.StatusReasonForbidden, `admission webhook "pods.pipeguard.dev" denied the request: x`+"\nPG999: no policy")
		}, "probe", "the API server asks the webhook and gets no decision"},
		"too few replicas": {func(f *fakeAPI) { get[*appsv1.Deployment](t, f, atDeployment, 0).Status.ReadyReplicas = 1 }, "replicas", "1 of 2 replicas are ready"},
		"no replicas":      {func(f *fakeAPI) { get[*appsv1.Deployment](t, f, atDeployment, 0).Spec.Replicas = new(int32(0)) }, "replicas", "has no replicas"},
		"a rollout":        {func(f *fakeAPI) { get[*appsv1.Deployment](t, f, atDeployment, 0).Status.UpdatedReplicas = 1 }, "replicas", "a rollout has not finished"},
		"silent replicas":  {func(f *fakeAPI) { f.lists[atLeases] = []any{} }, "replicas", "no replica has reported lately"},
		"a replica that lags": {func(f *fakeAPI) {
			get[*coordinationv1.Lease](t, f, atLeases, 1).Annotations[v1alpha1.AnnotationRevision] = "sha256:2"
		}, "replicas", "different revisions: sha256:1, sha256:2"},
		"a replica without policies": {func(f *fakeAPI) {
			get[*coordinationv1.Lease](t, f, atLeases, 1).Annotations[v1alpha1.AnnotationRevision] = ""
		}, "replicas", "has no policies"},
		"a replica that failed": {func(f *fakeAPI) {
			get[*coordinationv1.Lease](t, f, atLeases, 1).Annotations[v1alpha1.AnnotationFailed] = "true"
		}, "replicas", "could not activate the newest policies"},
		"a policy that waits": {func(f *fakeAPI) { pipePolicy(f).Generation++ }, "policies", "its newest generation was not looked at yet"},
		"a policy that is refused": {func(f *fakeAPI) {
			pipePolicy(f).Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Refused", Message: "no"}}
		}, "policies", "Ready is False: Refused: no"},
		"a policy without a status": {func(f *fakeAPI) { pipePolicy(f).Status.Conditions = nil }, "policies", "does not say that it decides"},
		"bundles that are not published": {func(f *fakeAPI) {
			p := pipePolicy(f)
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: "BundlesPublished", Status: "False", Message: "no key"})
		}, "policies", "no key"},
		"a policy that records":     {func(f *fakeAPI) { pipePolicy(f).Spec.Admission.Action = v1alpha1.ActionAudit }, "policies", "admission.action is Audit"},
		"nodes that record":         {func(f *fakeAPI) { pipePolicy(f).Spec.Node.Action = v1alpha1.NodeLogOnly }, "policies", "node.action is LogOnly"},
		"a policy not on all nodes": {func(f *fakeAPI) { pipePolicy(f).Status.Nodes = &v1alpha1.NodeCounts{Total: 3, Current: 2} }, "policies", "2 of 3 nodes"},
		"defaults":                  {func(f *fakeAPI) { parameters(f, "{}") }, "modes", "hostProcess: Audit: HostProcess containers"},
		"the default requirement":   {func(f *fakeAPI) { parameters(f, "{hostProcess: Deny, equalPower: Deny, hostPaths: Deny}") }, "modes", "requirement: PrivilegedOrAllowedNamespace"},
		"a policy of the parameters": {func(f *fakeAPI) {
			parameters(f, "pipePolicies: {disks: {pipes: [csi-proxy-disk-v1], admission: {action: Warn}}}")
		}, "modes", "pipePolicies.disks: admission.action is Warn"},
		"what exists":                 {func(f *fakeAPI) { f.lists[atReports] = []any{reportOf("shop", v1alpha1.ReportSummary{Deny: 4})} }, "existing", "namespace shop: existing objects would be refused now (4 findings)"},
		"volumes that exist":          {func(f *fakeAPI) { f.lists[atClusterReports] = []any{reportOf("", v1alpha1.ReportSummary{Deny: 1})} }, "existing", "PersistentVolumes: existing objects would be refused now (1 finding)"},
		"objects that are not judged": {func(f *fakeAPI) { f.lists[atReports] = []any{reportOf("shop", v1alpha1.ReportSummary{Error: 2})} }, "existing", "2 objects could not be judged"},
		"a node without a report":     {func(f *fakeAPI) { f.lists[atGuardedNodes] = []any{} }, "nodes", "Node win1: has not reported"},
		"a silent node":               {func(f *fakeAPI) { node(f).ReportedAt = ago(time.Hour) }, "nodes", "has not reported for 1h0m0s"},
		"a local node":                {func(f *fakeAPI) { node(f).State, node(f).Message = v1alpha1.NodeLocal, "why" }, "nodes", "is Local: why"},
		"a node without a bundle":     {func(f *fakeAPI) { node(f).Bundle = nil }, "nodes", "reports no bundle"},
		"a node with an old bundle":   {func(f *fakeAPI) { node(f).Bundle.Revision = 6 }, "nodes", "decides by bundle 6 of pool windows, and 7 is published"},
		"a node with other policies":  {func(f *fakeAPI) { node(f).Bundle.PolicyRevision = "sha256:0" }, "nodes", "by policy revision sha256:0"},
		"a node that refused":         {func(f *fakeAPI) { node(f).Bundle.Refused = "rollback" }, "nodes", "(rollback)"},
		"a node whose bundle ended":   {func(f *fakeAPI) { node(f).Bundle.Invalid = "expired" }, "nodes", "(expired)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := strict()
			c.change(f)
			report, got := f.survey(t)
			found := report.of(t, c.check)
			if got.code != cli.ExitNo || report.Verdict != verdictNot || found.State != stateNo || !strings.Contains(found.String(), c.want) {
				t.Errorf("exit code %d, verdict %s, %s", got.code, report.Verdict, found)
			}
		})
	}
}

func reportOf(namespace string, summary v1alpha1.ReportSummary, results ...v1alpha1.ReportResult) *v1alpha1.PipeReport {
	return &v1alpha1.PipeReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pipeguard"},
		Report:     v1alpha1.Report{Revision: revision, Part: "1/1", Summary: summary, Results: results},
	}
}

// Where the rights lack, it is unknown whether the guard is enforced, and a fault that is found is one all the same.
func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	for path, names := range map[string][]string{
		atConfigurations: {"objects", "changes"}, atDeployment: {"replicas", "modes"}, atParameters: {"modes"}, atLeases: {"replicas"},
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

func TestTheProbeIsSentUntilPipeguardAnswers(t *testing.T) {
	security := failure(403, metav1.StatusReasonForbidden, `pods "x" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes`)
	floor := failure(422, metav1.StatusReasonInvalid, `pods "x" is forbidden: ValidatingAdmissionPolicy 'pipeguard-floor' with binding 'pipeguard-floor' denied request: no`)
	for name, c := range map[string]struct {
		answers     map[string]metav1.Status
		state, want string
	}{
		"pods":            {map[string]metav1.Status{atPods: refusedByWebhook("pods")}, stateOK, "the dry run of a Pod in namespace shop"},
		"no right":        {map[string]metav1.Status{atPods: lacking("pods"), atTemplates: refusedByWebhook("podtemplates")}, stateOK, "the dry run of a PodTemplate"},
		"other plugins":   {map[string]metav1.Status{atPods: security, atTemplates: lacking("x"), atDeployments: refusedByWebhook("workloads")}, stateOK, "the dry run of a Deployment"},
		"no right at all": {map[string]metav1.Status{atPods: lacking("pods"), atTemplates: lacking("x"), atDeployments: lacking("x")}, stateUnknown, "not tried"},
		"the floor":       {map[string]metav1.Status{atPods: floor}, stateOK, "before the webhook was asked"},
		"another webhook": {map[string]metav1.Status{
			atPods:      failure(403, metav1.StatusReasonForbidden, `admission webhook "a.example.com" denied the request: admission webhook "pods.pipeguard.dev" denied the request: `+"\nPG003: x"),
			atTemplates: failure(403, metav1.StatusReasonForbidden, `admission webhook "pods.pipeguard.dev" denied the request: `+"\nPG003: x"), atDeployments: lacking("x"),
		}, stateUnknown, "not tried"},
		"another policy": {map[string]metav1.Status{
			atPods: failure(422, metav1.StatusReasonInvalid, `ValidatingAdmissionPolicy 'other' with binding 'pipeguard' denied request: no`), atTemplates: lacking("x"), atDeployments: lacking("x"),
		}, stateUnknown, "not tried"},
		"a template that is admitted": {map[string]metav1.Status{atPods: security}, stateNo, "was admitted"},
	} {
		f := strict()
		f.answers = c.answers
		report, _ := f.survey(t)
		if found := report.of(t, "probe"); found.State != c.state || !strings.Contains(found.String(), c.want) {
			t.Errorf("%s: %s", name, found)
		}
	}
	if answerOf(errors.New(`admission webhook "pods.pipeguard.dev" denied the request: PG003: x`), "pods") != answerOther {
		t.Error("a text that no API server sent is an answer")
	}
	if answerOf(apierrors.NewInternalError(errors.New("x")), "pods") != answerOther {
		t.Error("any internal error is an answer")
	}
}

func TestTheNextStepIsCounted(t *testing.T) {
	subject := func(name string) v1alpha1.ReportSubject {
		return v1alpha1.ReportSubject{Kind: "Pod", Namespace: "shop", Name: name}
	}
	f := strict()
	get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"] = "{}"
	f.lists[atReports] = []any{
		reportOf("shop", v1alpha1.ReportSummary{Audit: 5, Warn: 3},
			v1alpha1.ReportResult{Rule: "PG005", Effect: "audit", Field: "a", Subject: subject("one")},
			v1alpha1.ReportResult{Rule: "PG005", Effect: "audit", Field: "b", Subject: subject("one")},
			v1alpha1.ReportResult{Rule: "PG006", Effect: "warn", Field: "c", Subject: subject("two")},
			v1alpha1.ReportResult{Rule: "PG008", Effect: "audit", Field: "d", Subject: subject("two")},
			v1alpha1.ReportResult{Rule: "PG008", Effect: "audit", Subject: subject("*")},
			v1alpha1.ReportResult{Rule: "PG004", Effect: "warn", Field: "e", Subject: subject("one"), Policies: []string{"disks"}},
			v1alpha1.ReportResult{Rule: "PG010", Effect: "audit", Field: "f", Subject: subject("one"), Policies: []string{"disks", "more"}},
			v1alpha1.ReportResult{Rule: "PG010", Effect: "deny", Field: "f", Subject: subject("three"), Policies: []string{"disks"}},
			v1alpha1.ReportResult{Rule: "PG009", Effect: "warn", Field: "g", Subject: subject("one"), Policies: []string{"disks"}},
			v1alpha1.ReportResult{Rule: "HOUSE1", Effect: "audit", Field: "h", Subject: subject("one")}),
		&v1alpha1.PipeReport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pipeguard-2"}, Report: v1alpha1.Report{Revision: revision, Part: "2/2", Summary: v1alpha1.ReportSummary{Audit: 5},
			Results: []v1alpha1.ReportResult{{Rule: "PG011", Effect: "audit", Field: "i", Subject: subject("two")}}}},
	}
	report, _ := f.survey(t)
	var got []string
	for _, n := range report.Existing.Next {
		text := n.String()
		if n.AtLeast {
			text += " at least"
		}
		got = append(got, text)
		if want := map[bool]int{true: 2, false: 1}[n.Setting == settingHostProcess]; n.Objects != want {
			t.Errorf("%+v", n)
		}
	}
	want := "PipePolicy disks: admission.action: Deny|PipePolicy more: admission.action: Deny|PipePolicy disks: admission.requirement: AllowedNamespace|" +
		"equalPower: Audit → Deny at least|hostPaths: Audit → Deny|hostProcess: Audit → Deny"
	if strings.Join(got, "|") != want || report.Existing.Audit != 5 || report.Existing.Warn != 3 {
		t.Errorf("got %s\n%+v", strings.Join(got, "|"), report.Existing)
	}
	if text := f.run(t, "status").out; !strings.Contains(text, "hostProcess: Audit → Deny") || !strings.Contains(text, "2 objects (3 findings)") || !strings.Contains(text, "at least 1 object (2 findings)") {
		t.Errorf("got %s", text)
	}
}

// Every built-in rule refuses always, or is moved by a setting that is known here, or is advice.
func TestEveryRuleHasItsNextStep(t *testing.T) {
	always := map[string]bool{"PG000": true, "PG001": true, "PG003": true}
	advice := map[string]bool{"PG009": true, "PG998": true}
	modules, err := policy.LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for name, text := range modules.WithoutTests() {
		for line := range strings.Lines(text) {
			code, ok := strings.CutPrefix(strings.TrimSpace(line), "#   code: ")
			if !ok {
				continue
			}
			count++
			_, moves := stepOf[code]
			if n := len(map[bool]bool{always[code]: true, advice[code]: true, moves: true}); n != 2 || always[code] && advice[code] {
				t.Errorf("%s: rule %s is in no list, or in several", name, code)
			}
		}
	}
	if count < 11 {
		t.Errorf("only %d rules were found", count)
	}
}

func TestReportsOfOtherPoliciesAreUnknown(t *testing.T) {
	f := strict()
	r := reportOf("shop", v1alpha1.ReportSummary{Audit: 1})
	r.Revision = "sha256:0"
	f.lists[atReports] = []any{r}
	report, got := f.survey(t)
	if c := report.of(t, "existing"); got.code != cli.ExitBadInput || c.State != stateUnknown || !strings.Contains(c.String(), "revision sha256:0, by which no replica decides") {
		t.Errorf("exit code %d, %s", got.code, c)
	}
}

func TestWebhooksThatMayBeIgnored(t *testing.T) {
	for _, c := range []struct {
		text    string
		isSplit bool
		ignored int // webhook: pipes, host, hostprocess
		want    string
	}{
		{"{hostProcess: Deny}", false, 1, stateNo},
		{"{hostPaths: Deny}", false, 1, stateNo},
		{"{}", false, 1, stateOK},
		{"{}", false, 0, stateNo},
		{"{hostProcess: Deny}", true, 1, stateOK},
		{"{hostProcess: Deny}", true, 2, stateNo},
		{"{equalPower: Deny}", true, 1, stateNo},
		{"{equalPower: Deny}", true, 2, stateOK},
	} {
		f := strict()
		get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"] = c.text
		conf := get[configurationOf](t, f, atConfigurations, 0)
		if c.isSplit {
			w := *conf.Webhooks[1].DeepCopy()
			w.Name = "hostprocess-pods.pipeguard.dev"
			conf.Webhooks = append(conf.Webhooks, w)
		}
		conf.Webhooks[c.ignored].FailurePolicy = new(admissionregistrationv1.Ignore)
		report, _ := f.survey(t)
		if found := report.of(t, "objects"); found.State != c.want {
			t.Errorf("%+v: %s", c, found)
		}
	}
}

func TestReleasesInTwoNamespacesAreToldApart(t *testing.T) {
	f := strict()
	other := configuration("other", webhook("pods"))
	other.Webhooks[0].ClientConfig.Service.Namespace = "elsewhere"
	f.lists[atConfigurations] = append(f.lists[atConfigurations], other)
	if got := f.run(t, "status"); got.code != cli.ExitBadInput || !strings.Contains(got.errOut, "name one with --guard-namespace") {
		t.Errorf("exit code %d, %s", got.code, got.errOut)
	}
	if got := f.run(t, "status", "--guard-namespace", "guard"); got.code != cli.ExitYes {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
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
	get[configurationOf](t, f, atConfigurations, 0).Webhooks[0].MatchConditions[0].Name = bad
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
	get[configurationOf](t, f, atConfigurations, 0).Webhooks[0].NamespaceSelector = &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist}},
	}
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
