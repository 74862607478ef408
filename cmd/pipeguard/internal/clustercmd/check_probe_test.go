package clustercmd

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/admission"
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

// refusedByPolicy is what an API server answers when a policy of a name refuses a resource with the words of a floor.
func refusedByPolicy(resource, name string) metav1.Status {
	return failure(422, metav1.StatusReasonInvalid, resource+` "x" is forbidden: ValidatingAdmissionPolicy '`+name+`' with binding '`+name+`' denied request: Pipeguard's floor refuses it. PG003: x`)
}

func TestTheProbeIsSentUntilPipeguardAnswers(t *testing.T) {
	security := failure(403, metav1.StatusReasonForbidden, `pods "x" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes`)
	for name, c := range map[string]struct {
		answers     map[string]metav1.Status
		state, want string
	}{
		"pods":            {map[string]metav1.Status{atPods: refusedByWebhook("pods")}, stateOK, "the dry run of a Pod in namespace shop"},
		"no right":        {map[string]metav1.Status{atPods: lacking("pods"), atTemplates: refusedByWebhook("podtemplates")}, stateOK, "the dry run of a PodTemplate"},
		"other plugins":   {map[string]metav1.Status{atPods: security, atTemplates: lacking("x"), atDeployments: refusedByWebhook("workloads")}, stateOK, "the dry run of a Deployment"},
		"no right at all": {map[string]metav1.Status{atPods: lacking("pods"), atTemplates: lacking("x"), atDeployments: lacking("x")}, stateUnknown, "not tried"},
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

func TestARefusalByTheFloorIsProofOnlyOfAFloorThatTheReleaseKeeps(t *testing.T) {
	floor := refusedByPolicy("pods", "pipeguard-floor")
	everywhere := func(policy string) map[string]metav1.Status {
		return map[string]metav1.Status{
			atPods: refusedByPolicy("pods", policy), atTemplates: refusedByPolicy("podtemplates", policy), atDeployments: refusedByPolicy("deployments.apps", policy),
		}
	}
	for name, c := range map[string]struct {
		mode        string
		answers     map[string]metav1.Status
		state, want string
	}{
		"the floor, then the webhook":  {floorAlways, map[string]metav1.Status{atPods: floor, atTemplates: refusedByWebhook("podtemplates")}, stateOK, "was refused by that"},
		"the floor, and no webhook":    {floorAlways, map[string]metav1.Status{atPods: floor}, stateNo, "does not ask it"},
		"the floor, and no more right": {floorAlways, map[string]metav1.Status{atPods: floor, atTemplates: lacking("x")}, stateOK, "is not known"},
		"the floor, and no answer": {floorAlways, map[string]metav1.Status{
			atPods:      floor,
			atTemplates: failure(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "podtemplates.pipeguard.dev": connection refused`),
		}, stateNo, "connection refused"},
		"the floor alone":                 {floorOnly, everywhere("pipeguard-floor"), stateOK, "was refused by the floor"},
		"no floor is kept":                {floorOff, everywhere("pipeguard-floor"), stateUnknown, "not tried"},
		"another policy":                  {floorAlways, everywhere("pipeguard-floor-2"), stateUnknown, "not tried"},
		"another policy, and no webhook":  {floorOnly, everywhere("decoy"), stateUnknown, "not tried"},
		"another policy, then the canary": {floorOff, map[string]metav1.Status{atPods: floor, atTemplates: refusedByWebhook("podtemplates")}, stateOK, "the dry run of a PodTemplate"},
	} {
		f := strict()
		f.floor(t, c.mode)
		f.answers = c.answers
		report, _ := f.survey(t)
		if found := report.of(t, "probe"); found.State != c.state || !strings.Contains(found.String(), c.want) {
			t.Errorf("%s: %s", name, found)
		}
	}
	f := strict()
	f.floor(t, floorAlways)
	f.answers = everywhere("pipeguard-floor")
	f.answers[atDeployment] = lacking("it")
	report, _ := f.survey(t)
	if found := report.of(t, "probe"); found.State != stateUnknown {
		t.Errorf("where it is not known whether a floor is kept: %s", found)
	}
}

// A floor that an API server reads from files has a name that no release knows, and leaves the canary to the webhook as every floor does.
func TestBehindAFloorFromFilesTheCanaryIsTheProof(t *testing.T) {
	f := strict()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			f.ServeHTTP(w, r)
			return
		}
		var sent metav1.PartialObjectMetadata
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		answer := refusedByPolicy("podtemplates", "pipeguard-floor.static.k8s.io")
		if sent.Name == admission.APICanaryName {
			answer = refusedByWebhook("podtemplates")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(answer.Code))
		_ = json.NewEncoder(w).Encode(answer)
	})
	got := runOn(t, handler, "status")
	if got.code != cli.ExitYes || !strings.Contains(got.out, "the dry run of a PodTemplate pipeguard-canary in namespace shop was refused by Pipeguard") {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
	}
}
