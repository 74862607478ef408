package clustercmd

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
)

func TestWhatExistsAndWouldBeRefused(t *testing.T) {
	findsFaults(t, map[string]fault{
		"what exists":                 {func(f *fakeAPI) { f.lists[atReports] = []any{reportOf("shop", v1alpha1.ReportSummary{Deny: 4})} }, "existing", "namespace shop: existing objects would be refused now (4 findings)"},
		"volumes that exist":          {func(f *fakeAPI) { f.lists[atClusterReports] = []any{reportOf("", v1alpha1.ReportSummary{Deny: 1})} }, "existing", "PersistentVolumes: existing objects would be refused now (1 finding)"},
		"objects that are not judged": {func(f *fakeAPI) { f.lists[atReports] = []any{reportOf("shop", v1alpha1.ReportSummary{Error: 2})} }, "existing", "2 objects could not be judged"},
	})
}

func reportOf(namespace string, summary v1alpha1.ReportSummary, results ...v1alpha1.ReportResult) *v1alpha1.PipeReport {
	return &v1alpha1.PipeReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pipeguard"},
		Report:     v1alpha1.Report{Revision: revision, Part: "1/1", Summary: summary, Results: results},
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
		if want := map[bool]int{true: 2, false: 1}[n.Setting == settingHostProcess || n.Setting == settingPreset]; n.Objects != want {
			t.Errorf("%+v", n)
		}
	}
	want := "PipePolicy disks: admission.action: Deny|PipePolicy more: admission.action: Deny|PipePolicy disks: admission.requirement: AllowedNamespace|" +
		"equalPower: Audit → Deny at least|hostPaths: Audit → Deny|hostProcess: Audit → Deny|preset: default → strict at least"
	if strings.Join(got, "|") != want || report.Existing.Audit != 5 || report.Existing.Warn != 3 {
		t.Errorf("got %s\n%+v", strings.Join(got, "|"), report.Existing)
	}
	if text := f.run(t, "status").out; !strings.Contains(text, "hostProcess: Audit → Deny") || !strings.Contains(text, "2 objects (3 findings)") || !strings.Contains(text, "at least 1 object (2 findings)") {
		t.Errorf("got %s", text)
	}
}

// Every built-in rule refuses always, or is moved by a setting that is known here, or is advice.
func TestEveryRuleHasItsNextStep(t *testing.T) {
	always := map[string]bool{"PG000": true}
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

// From observe, the next preset refuses what mounts guarded pipes, and not yet what reaches the host otherwise.
func TestWhatTheNextPresetRefuses(t *testing.T) {
	subject := func(name string) v1alpha1.ReportSubject {
		return v1alpha1.ReportSubject{Kind: "Pod", Namespace: "shop", Name: name}
	}
	results := []v1alpha1.ReportResult{
		{Rule: "PG001", Effect: "audit", Field: "a", Subject: subject("one")},
		{Rule: "PG002", Effect: "audit", Field: "b", Subject: subject("one")},
		{Rule: "PG003", Effect: "audit", Field: "c", Subject: subject("two")},
		{Rule: "PG010", Effect: "audit", Field: "d", Subject: subject("three"), Policies: []string{"parameters/azuredisk"}},
		{Rule: "PG010", Effect: "audit", Field: "e", Subject: subject("four"), Policies: []string{"disks"}},
		{Rule: "PG004", Effect: "warn", Field: "f", Subject: subject("five")},
		{Rule: "PG011", Effect: "audit", Field: "g", Subject: subject("six")},
	}
	for text, want := range map[string]nextStep{
		"{action: Audit}": {Setting: "preset", From: "observe", To: "default", Findings: 4, Objects: 3},
		"{}":              {Setting: "preset", From: "default", To: "strict", Findings: 2, Objects: 2},
	} {
		f := strict()
		f.parameters(t, text)
		if text != "{}" {
			f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.FailurePolicy = new(admissionregistrationv1.Ignore)
			})
		}
		f.lists[atReports] = []any{reportOf("shop", v1alpha1.ReportSummary{Audit: 6, Warn: 1}, results...)}
		report, _ := f.survey(t)
		if got := report.Existing.Next[len(report.Existing.Next)-1]; got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	f := strict()
	f.floor(t, floorAlways)
	f.lists[atReports] = []any{reportOf("shop", v1alpha1.ReportSummary{Audit: 1}, results[6])}
	report, _ := f.survey(t)
	for _, n := range report.Existing.Next {
		if n.Setting == settingPreset {
			t.Errorf("after strict comes %+v", n)
		}
	}
}
