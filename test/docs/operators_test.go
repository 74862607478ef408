package docs

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/policies"
)

// printed adds the PipePolicies that a text shows, whole ones alone.
func printed(t *testing.T, s *policyset.Sources, text string) (names []string) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(block[1], "kind: PipePolicy\n") {
			continue
		}
		raw, err := yaml.YAMLToJSONStrict([]byte(block[1]))
		if err == nil {
			err = s.Add("pipeguard.dev/v1alpha1", policyset.KindPipePolicy, raw)
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, block[1])
		}
		p := &s.PipePolicies[len(s.PipePolicies)-1]
		names = append(names, p.Name)
		for _, warning := range policyset.Warnings(p, time.Now()) {
			t.Errorf("%s: %s", p.Name, warning)
		}
	}
	return names
}

// ofDriver are pods of a driver and of others, in the modes in which the guide has them.
var ofDriver = map[string]struct{ container, image, account, pipe, runAs string }{
	"driver with a pipe":         {"azuredisk", "azuredisk-csi:v1", "csi-azuredisk-node-sa", "csi-proxy-disk-v1", ""},
	"driver on the host":         {"azuredisk", "azuredisk-csi:v1-hp", "csi-azuredisk-node-sa", "", system},
	"driver as another user":     {"azuredisk", "azuredisk-csi:v1-hp", "csi-azuredisk-node-sa", "", "hpc-users"},
	"probe on the host":          {"liveness-probe", "livenessprobe:v2", "csi-azuredisk-node-sa", "", system},
	"registrar on the host":      {"node-driver-registrar", "csi-node-driver-registrar:v2", "csi-azuredisk-node-sa", "", system},
	"probe with a pipe":          {"liveness-probe", "livenessprobe:v2", "csi-azuredisk-node-sa", "csi-proxy-disk-v1", ""},
	"another image on the host":  {"liveness-probe", "evil:v2", "csi-azuredisk-node-sa", "", system},
	"another account on host":    {"azuredisk", "azuredisk-csi:v1", "default", "", system},
	"another account with pipes": {"azuredisk", "azuredisk-csi:v1", "default", "csi-proxy-disk-v1", ""},
}

const system = `NT AUTHORITY\SYSTEM`

// permitted are those of ofDriver that policies permit, where other HostProcess containers are denied.
func permitted(t *testing.T, policyObjects ...v1alpha1.PipePolicy) (names []string) {
	t.Helper()
	s := policyset.Sources{Parameters: admission.DefaultParameters(), PipePolicies: policyObjects}
	s.Parameters.HostProcess = admission.ActionDeny
	var err error
	if s.Base, err = policy.LoadFS(policies.FS()); err != nil {
		t.Fatal(err)
	}
	modules, err := s.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(policy.Options{BaseTested: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Activate(t.Context(), modules); err != nil {
		t.Fatal(err)
	}
	reviewer, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range ofDriver {
		pod := corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "kube-system"},
			Spec: corev1.PodSpec{ServiceAccountName: c.account, Containers: []corev1.Container{{Name: c.container, Image: "registry.example/" + c.image}}},
		}
		if c.runAs != "" {
			pod.Spec.HostNetwork = true
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true), RunAsUserName: &c.runAs}}
		}
		if c.pipe != "" {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: `\\.\pipe\` + c.pipe}}}}
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: `\\.\pipe\` + c.pipe}}
		}
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		request, err := admission.ObjectReview(raw)
		if err != nil {
			t.Fatal(err)
		}
		switch res := reviewer.Review(t.Context(), request); {
		case res.Allowed:
			names = append(names, name)
		case res.Code != "PG005" && res.Code != "PG010":
			t.Errorf("%s: %s", name, res.Message)
		}
	}
	slices.Sort(names)
	return names
}

// No step of the guide refuses the driver or its sidecars before they have moved, and after the last one the old mode is refused.
func TestADriverMovesBetweenModesAsTheOperatorsGuideSays(t *testing.T) {
	guide := documents(t)["docs/operators-guide.md"]
	var s policyset.Sources
	for _, heading := range []string{"## HostProcess containers", "## From pipes to HostProcess and back"} {
		if names := printed(t, &s, sectionOf(guide, heading)); len(names) != 1 {
			t.Fatalf("%s shows %q", heading, names)
		}
	}
	both, sidecars := s.PipePolicies[0], s.PipePolicies[1]
	pipes := *both.DeepCopy()
	pipes.Spec.Subjects[0].HostProcess = nil
	nobody := *both.DeepCopy()
	nobody.Spec.Subjects = nil
	host := *sidecars.DeepCopy()
	host.Spec.Subjects = append(host.Spec.Subjects, both.Spec.Subjects[0])

	withPipe, onHost := []string{"driver with a pipe"}, []string{"driver on the host", "probe on the host", "registrar on the host"}
	for name, step := range map[string]struct {
		policies []v1alpha1.PipePolicy
		want     []string
	}{
		"one policy for both modes, and its sidecars": {[]v1alpha1.PipePolicy{both, sidecars}, slices.Concat(onHost, withPipe)},
		"pipes alone, after deleting azuredisk-host":  {[]v1alpha1.PipePolicy{pipes}, withPipe},
		"both, while it moves either way":             {[]v1alpha1.PipePolicy{pipes, host}, slices.Concat(onHost, withPipe)},
		"HostProcess alone":                           {[]v1alpha1.PipePolicy{nobody, host}, onHost},
	} {
		slices.Sort(step.want)
		if got := permitted(t, step.policies...); !slices.Equal(got, step.want) {
			t.Errorf("%s: permitted are %q, want %q", name, got, step.want)
		}
	}
}

func TestEveryPipePolicyOfTheOperatorsGuideIsTaken(t *testing.T) {
	var s policyset.Sources
	if names := printed(t, &s, documents(t)["docs/operators-guide.md"]); len(names) < 3 {
		t.Fatalf("only %q were found", names)
	}
	for i := range s.PipePolicies {
		if err := policyset.CheckPipePolicy(&s.PipePolicies[i]).ToAggregate(); err != nil {
			t.Errorf("%s: %v", s.PipePolicies[i].Name, err)
		}
	}
}
