package clustercmd

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Where the fake API server has the floor about pods.
const (
	atFloor        = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/pipeguard-floor"
	atFloorBinding = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/pipeguard-floor"
)

// floor has the release keep a floor, and the API server the one that its policies say.
func (f *fakeAPI) floor(t *testing.T, mode string) {
	t.Helper()
	get[*appsv1.Deployment](t, f, atDeployment, 0).Spec.Template.Annotations[configAnnotation] = "apiVersion: x\nfloor: {mode: \"" + mode + "\", name: pipeguard-floor}\n"
	if mode == floorOff {
		return
	}
	sources := policyset.Sources{Parameters: f.readParameters(t)}
	for _, o := range f.lists[atPolicies] {
		if p, ok := o.(*v1alpha1.PipePolicy); ok {
			sources.PipePolicies = append(sources.PipePolicies, *p)
		}
	}
	made, err := floor.New(floor.Options{Name: "pipeguard-floor", Policies: sources.Policies(), Revision: revision, Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range made.Objects() {
		f.objects["/apis/admissionregistration.k8s.io/v1/"+resourcesOf[o.GetObjectKind().GroupVersionKind().Kind]+"/"+o.GetName()] = o
	}
}

func TestAFloorAsThePoliciesSay(t *testing.T) {
	f := strict()
	report, _ := f.survey(t)
	if c := report.of(t, "floor"); c.State != stateOK || !strings.Contains(c.Text, "there is no floor (floor.mode Off)") {
		t.Errorf("without a floor: %s", c)
	}
	f.floor(t, floorAlways)
	// An outage then refuses by the floor, so that failures may be ignored.
	f.charted(t, func(w *admissionregistrationv1.ValidatingWebhook) {
		w.FailurePolicy = new(admissionregistrationv1.Ignore)
	})
	report, got := f.survey(t)
	if c := report.of(t, "floor"); got.code != cli.ExitYes || c.State != stateOK || len(c.Items) != 0 {
		t.Errorf("exit code %d: %s", got.code, got.out)
	}
	// One that is not in force excuses nothing.
	delete(f.objects, atFloor)
	report, _ = f.survey(t)
	if c := report.of(t, "objects"); c.State != stateNo || !strings.Contains(c.String(), "failurePolicy Ignore") {
		t.Errorf("without the floor: %s", c)
	}
}

func TestAFloorThatStandsAlone(t *testing.T) {
	f := strict()
	f.floor(t, floorOnly)
	f.answers[atPods] = failure(403, metav1.StatusReasonForbidden, `pods "x" is forbidden: ValidatingAdmissionPolicy 'pipeguard-floor' with binding 'pipeguard-floor' denied request: Pipeguard's floor refuses it. PG003: x`)
	report, _ := f.survey(t)
	if c := report.of(t, "objects"); c.State != stateOK || !strings.Contains(c.String(), "objects: asks the webhook about objects all the same") {
		t.Errorf("with a configuration: %s", c)
	}
	f.lists[atConfigurations] = f.lists[atConfigurations][1:]
	report, got := f.survey(t)
	if c := report.of(t, "objects"); got.code != cli.ExitYes || c.State != stateOK || len(c.Items) != 0 {
		t.Errorf("exit code %d: %s", got.code, got.out)
	}
}

func TestAFloorThatIsNotAsThePoliciesSay(t *testing.T) {
	policy := func(f *fakeAPI) *admissionregistrationv1.ValidatingAdmissionPolicy {
		return get[*admissionregistrationv1.ValidatingAdmissionPolicy](t, f, atFloor, 0)
	}
	binding := func(f *fakeAPI) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
		return get[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, f, atFloorBinding, 0)
	}
	kept := func(change func(*fakeAPI)) func(*fakeAPI) {
		return func(f *fakeAPI) {
			f.floor(t, floorAlways)
			change(f)
		}
	}
	const about, bound = "ValidatingAdmissionPolicy pipeguard-floor: ", "ValidatingAdmissionPolicyBinding pipeguard-floor: "
	findsFaults(t, map[string]fault{
		"no policy":   {kept(func(f *fakeAPI) { delete(f.objects, atFloor) }), "floor", about + "is not there"},
		"no binding":  {kept(func(f *fakeAPI) { delete(f.objects, atFloorBinding) }), "floor", bound + "is not there"},
		"no volumes":  {kept(func(f *fakeAPI) { delete(f.objects, atFloor+"-volumes") }), "floor", "pipeguard-floor-volumes: is not there"},
		"going":       {kept(func(f *fakeAPI) { policy(f).DeletionTimestamp = new(ago(0)) }), "floor", about + "is being deleted"},
		"ignored":     {kept(func(f *fakeAPI) { policy(f).Spec.FailurePolicy = new(admissionregistrationv1.Ignore) }), "floor", about + "is not what the policies say: failurePolicy"},
		"a condition": {kept(func(f *fakeAPI) { policy(f).Spec.MatchConditions[0].Expression = "false" }), "floor", "say: matchConditions"},
		"a variable":  {kept(func(f *fakeAPI) { policy(f).Spec.Variables = policy(f).Spec.Variables[1:] }), "floor", "say: variables"},
		"constraints": {kept(func(f *fakeAPI) {
			policy(f).Spec.MatchConstraints.ExcludeResourceRules = policy(f).Spec.MatchConstraints.ResourceRules
		}), "floor", "say: matchConstraints"},
		"a rule": {kept(func(f *fakeAPI) { policy(f).Spec.Validations = policy(f).Spec.Validations[:1] }), "floor", "say: validations"},
		"params": {kept(func(f *fakeAPI) { policy(f).Spec.ParamKind = &admissionregistrationv1.ParamKind{Kind: "x"} }), "floor", "say: another field of its spec"},
		"a warning": {kept(func(f *fakeAPI) {
			binding(f).Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		}), "floor", bound + "is not what the policies say: validationActions"},
		"some namespaces": {kept(func(f *fakeAPI) {
			binding(f).Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
		}), "floor", "say: matchResources"},
		"another policy":    {kept(func(f *fakeAPI) { binding(f).Spec.PolicyName = "other" }), "floor", "say: policyName"},
		"an older revision": {kept(func(f *fakeAPI) { policy(f).Annotations[floor.RevisionAnnotation] = "sha256:0" }), "floor", "is made of revision sha256:0, by which no replica decides"},
		"no revision":       {kept(func(f *fakeAPI) { policy(f).Annotations = nil }), "floor", "is made of revision none"},
		"other parameters":  {kept(func(f *fakeAPI) { f.parameters(t, "{}") }), "floor", "is not what the policies say"},
		"a module, without a webhook": {func(f *fakeAPI) {
			f.floor(t, floorOnly)
			f.lists[atModules] = []any{module()}
		}, "floor", "PolicyModule house: the floor cannot say it, and no object is sent to the webhook"},
	})
}

func module() *v1alpha1.PolicyModule {
	m := &v1alpha1.PolicyModule{TypeMeta: metav1.TypeMeta{APIVersion: "pipeguard.dev/v1alpha1", Kind: "PolicyModule"}, ObjectMeta: metav1.ObjectMeta{Name: "house"}}
	m.Spec.Modules = []v1alpha1.RegoFile{{Name: "a.rego", Rego: "package pipeguard.admission\n"}}
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	return m
}

func TestModulesOutsideTheFloorAreNamed(t *testing.T) {
	f := strict()
	f.floor(t, floorAlways)
	f.lists[atModules] = []any{module()}
	report, _ := f.survey(t)
	if c := report.of(t, "floor"); c.State != stateOK || !strings.Contains(c.String(), "PolicyModule house: the floor cannot say it: while no replica answers, it refuses nothing") {
		t.Error(c)
	}
}

func TestPoliciesThatAreTooManyForAFloor(t *testing.T) {
	f := strict()
	p := admission.Policies{Parameters: f.readParameters(t), PipePolicies: map[string]admission.PipePolicy{}}
	for i := range 20_000 {
		p.PipePolicies[fmt.Sprintf("%s-%d", strings.Repeat("p", 200), i)] = admission.PipePolicy{Pipes: []string{"csi-proxy-disk-v1"}}
	}
	want, isClosed, err := wantedFloor(floor.Options{Name: "pipeguard-floor", Policies: p}, floor.Empty("pipeguard-floor")[0])
	if err != nil || !isClosed || want.GetName() != "pipeguard-floor" {
		t.Errorf("%v, closed: %t", err, isClosed)
	}
}

func TestAFloorThatCannotBeChecked(t *testing.T) {
	for name, change := range map[string]func(*fakeAPI){
		"no configuration":  func(f *fakeAPI) { get[*appsv1.Deployment](t, f, atDeployment, 0).Spec.Template.Annotations = nil },
		"not YAML":          func(f *fakeAPI) { f.config(t, "floor: [") },
		"an unknown mode":   func(f *fakeAPI) { f.config(t, "floor: {mode: Sometimes}") },
		"a name of a path":  func(f *fakeAPI) { f.config(t, "floor: {mode: Always, name: ../x}") },
		"no right to read":  func(f *fakeAPI) { f.floor(t, floorAlways); f.answers[atFloor] = lacking("it") },
		"no right to read2": func(f *fakeAPI) { f.floor(t, floorAlways); f.answers[atModules] = lacking("it") },
	} {
		f := strict()
		change(f)
		report, got := f.survey(t)
		if c := report.of(t, "floor"); got.code != cli.ExitBadInput || c.State != stateUnknown || len(c.Items) == 0 {
			t.Errorf("%s: exit code %d, %s", name, got.code, c)
		}
	}
}

// readParameters are the parameters of the release, as the webhook reads them.
func (f *fakeAPI) readParameters(t *testing.T) admission.Parameters {
	t.Helper()
	p, err := admission.ParseParameters([]byte(get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"]), policyset.ReadPipePolicy)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (f *fakeAPI) config(t *testing.T, text string) {
	t.Helper()
	get[*appsv1.Deployment](t, f, atDeployment, 0).Spec.Template.Annotations[configAnnotation] = text
}
