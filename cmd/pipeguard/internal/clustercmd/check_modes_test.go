package clustercmd

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestModesThatDoNotRefuse(t *testing.T) {
	findsFaults(t, map[string]fault{
		"defaults":                {func(f *fakeAPI) { f.parameters(t, "{}") }, "modes", "hostProcess: Audit: HostProcess containers"},
		"the default requirement": {func(f *fakeAPI) { f.parameters(t, "{hostProcess: Deny, equalPower: Deny, hostPaths: Deny}") }, "modes", "requirement: PrivilegedOrAllowedNamespace"},
		"a policy of the parameters": {func(f *fakeAPI) {
			f.parameters(t, "pipePolicies: {disks: {pipes: [csi-proxy-disk-v1], admission: {action: Warn}}}")
		}, "modes", "pipePolicies.disks: admission.action is Warn"},
	})
}

func TestTheActionThatOnlyRecordsIsAFault(t *testing.T) {
	findsFaults(t, map[string]fault{
		"an action that records": {func(f *fakeAPI) { f.parameters(t, "{action: Audit}") }, "modes", "action: Audit: mounts of guarded pipes that no PipePolicy governs are not refused"},
	})
}

func TestThePresetThatHolds(t *testing.T) {
	const deny = "requirement: AllowedNamespace\nhostProcess: Deny\nequalPower: Deny\nhostPaths: "
	for name, c := range map[string]struct {
		parameters, named, mode string
		failurePolicy           admissionregistrationv1.FailurePolicyType
		want                    string
	}{
		"nothing set":             {"{}", "", floorOff, admissionregistrationv1.Fail, "preset default: "},
		"observe":                 {"{action: Audit}", "", floorOff, admissionregistrationv1.Ignore, "preset observe: "},
		"strict":                  {deny + "Deny", "", floorAlways, admissionregistrationv1.Fail, "preset strict: "},
		"nearest to strict":       {deny + "Audit", "", floorAlways, admissionregistrationv1.Fail, "preset strict, but for parameters.hostPaths: Audit: "},
		"the one that is named":   {"{hostPaths: Audit}", "strict", floorAlways, admissionregistrationv1.Fail, "preset strict, but for parameters.equalPower: Audit, parameters.hostPaths: Audit, "},
		"a name that there is no": {"{}", "lenient", floorOff, admissionregistrationv1.Fail, "preset default: "},
		"a namespace in strict": {deny + "Deny\nallowedNamespaces: {storage: {}}", "strict", floorAlways, admissionregistrationv1.Fail,
			"preset strict, but for parameters.allowedNamespaces: storage: "},
		"the floor alone": {deny + "Deny", "strict", floorOnly, "", "preset strict, but for floor.mode: Only: "},
	} {
		f := strict()
		f.parameters(t, c.parameters)
		get[*corev1.ConfigMap](t, f, atParameters, 0).Annotations = map[string]string{presetAnnotation: c.named}
		f.floor(t, c.mode)
		if c.failurePolicy == "" {
			f.lists[atConfigurations] = f.lists[atConfigurations][1:]
		} else {
			f.charted(t, func(w *admissionregistrationv1.ValidatingWebhook) { w.FailurePolicy = &c.failurePolicy })
		}
		report, _ := f.survey(t)
		if found := report.of(t, "modes"); !strings.HasPrefix(found.Text, c.want) {
			t.Errorf("%s: %s", name, found)
		}
		if isExact := !strings.Contains(c.want, "but for"); isExact != (len(report.Preset.Differs) == 0) {
			t.Errorf("%s: %+v", name, report.Preset)
		}
	}
}
