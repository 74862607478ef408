package clustercmd

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProbesThatShowAFault(t *testing.T) {
	findsFaults(t, map[string]fault{
		"an admitted probe": {func(f *fakeAPI) { delete(f.answers, atPods) }, "probe", "was admitted"},
		"a probe without an answer": {func(f *fakeAPI) {
			f.answers[atPods] = failure(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "pods.pipeguard.dev": connection refused`)
		}, "probe", "connection refused"},
		"a probe without a decision": {func(f *fakeAPI) {
			f.answers[atPods] = failure(403, metav1.StatusReasonForbidden, `admission webhook "pods.pipeguard.dev" denied the request: x`+"\nPG999: no policy")
		}, "probe", "the API server asks the webhook and gets no decision"},
	})
}

func TestTheProbeIsSentUntilPipeguardAnswers(t *testing.T) {
	security := failure(403, metav1.StatusReasonForbidden, `pods "x" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes`)
	floor := failure(422, metav1.StatusReasonInvalid, `pods "x" is forbidden: ValidatingAdmissionPolicy 'pipeguard-floor' with binding 'pipeguard-floor' denied request: Pipeguard's floor refuses it. PG003: x`)
	for name, c := range map[string]struct {
		answers     map[string]metav1.Status
		state, want string
	}{
		"pods":                         {map[string]metav1.Status{atPods: refusedByWebhook("pods")}, stateOK, "the dry run of a Pod in namespace shop"},
		"no right":                     {map[string]metav1.Status{atPods: lacking("pods"), atTemplates: refusedByWebhook("podtemplates")}, stateOK, "the dry run of a PodTemplate"},
		"other plugins":                {map[string]metav1.Status{atPods: security, atTemplates: lacking("x"), atDeployments: refusedByWebhook("workloads")}, stateOK, "the dry run of a Deployment"},
		"no right at all":              {map[string]metav1.Status{atPods: lacking("pods"), atTemplates: lacking("x"), atDeployments: lacking("x")}, stateUnknown, "not tried"},
		"the floor, then the webhook":  {map[string]metav1.Status{atPods: floor, atTemplates: refusedByWebhook("podtemplates")}, stateOK, "was refused by that"},
		"the floor, and no webhook":    {map[string]metav1.Status{atPods: floor}, stateNo, "does not ask it"},
		"the floor, and no more right": {map[string]metav1.Status{atPods: floor, atTemplates: lacking("x")}, stateOK, "is not known"},
		"the floor, and no answer": {map[string]metav1.Status{
			atPods:      floor,
			atTemplates: failure(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "podtemplates.pipeguard.dev": connection refused`),
		}, stateNo, "connection refused"},
		"another webhook": {map[string]metav1.Status{
			atPods:      failure(403, metav1.StatusReasonForbidden, `admission webhook "a.example.com" denied the request: admission webhook "pods.pipeguard.dev" denied the request: `+"\nPG003: x"),
			atTemplates: failure(403, metav1.StatusReasonForbidden, `admission webhook "pods.pipeguard.dev" denied the request: `+"\nPG003: x"), atDeployments: lacking("x"),
		}, stateUnknown, "not tried"},
		"a policy by the floor's name": {map[string]metav1.Status{
			atPods: failure(422, metav1.StatusReasonInvalid, `pods "x" is forbidden: ValidatingAdmissionPolicy 'pipeguard-floor' with binding 'pipeguard-floor' denied request: no`), atTemplates: lacking("x"), atDeployments: lacking("x"),
		}, stateUnknown, "not tried"},
		"the floor's words in another message": {map[string]metav1.Status{
			atPods: failure(403, metav1.StatusReasonForbidden, `admission webhook "a.example.com" denied the request: ValidatingAdmissionPolicy 'a' with binding 'a' denied request: Pipeguard's floor refuses it. `), atTemplates: lacking("x"), atDeployments: lacking("x"),
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
}
