package policyset

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestWhatAPipePolicyCouldNeverPermitIsRefused(t *testing.T) {
	image := func(s string) func(*v1alpha1.PipePolicySpec) {
		return func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].Images = []string{s} }
	}
	method := func(s string) func(*v1alpha1.PipePolicySpec) {
		return func(p *v1alpha1.PipePolicySpec) { p.Node.Methods = []string{s} }
	}
	path := func(s string) func(*v1alpha1.PipePolicySpec) {
		return func(p *v1alpha1.PipePolicySpec) { p.Node.PathPrefixes = []string{s} }
	}
	name := func(s string) v1alpha1.PipePolicy { return pipes(s) }
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for what, c := range map[string]struct {
		policy v1alpha1.PipePolicy
		fault  string // empty if there is none
	}{
		"a method":                   {pipes("p", method("ListDiskIDs")), ""},
		"a method in small letters":  {pipes("p", method("listdiskids")), `did you mean "ListDiskIDs"?`},
		"a method misspelt":          {pipes("p", method("FormatVolumes")), `did you mean "FormatVolume"?`},
		"a method of nobody":         {pipes("p", method("Teleport")), "not a method of the node API"},
		"any method":                 {pipes("p", method("*")), "leave the list out to permit all"},
		"a path":                     {pipes("p", path(`C:\var\lib\kubelet`)), ""},
		"a path with slashes":        {pipes("p", path(`c:/var/lib`)), ""},
		"a relative path":            {pipes("p", path(`var\lib\kubelet`)), "not an absolute path"},
		"a path of no drive":         {pipes("p", path(`\var\lib`)), "not an absolute path"},
		"a path of a drive's place":  {pipes("p", path(`C:var`)), "not an absolute path"},
		"a path upwards":             {pipes("p", path(`C:\var\..\x`)), "not an absolute path"},
		"an image":                   {pipes("p", image("registry.example:5000/team/driver:v1.2")), ""},
		"an image by digest":         {pipes("p", image("registry.example/driver"+digest)), ""},
		"a beginning of images":      {pipes("p", image("registry.example/driver:v1.*")), ""},
		"an image of a short digest": {pipes("p", image("registry.example/driver@sha256:0a")), "matches no image"},
		"a URL":                      {pipes("p", image("https://registry.example/driver")), "matches no image"},
		"an image with a space":      {pipes("p", image("registry.example/driver v1")), "matches no image"},
		"an image without its tag":   {pipes("p", image("registry.example/driver:")), "matches no image"},
		"a name":                     {name("disks.of-azure"), ""},
		"a name in capitals":         {name("Disks"), "metadata.name"},
		"a name with a slash":        {name("a/b"), "metadata.name"},
		"no name":                    {name(""), "metadata.name"},
	} {
		err := CheckPipePolicy(&c.policy).ToAggregate()
		if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", what, err, c.fault)
		}
	}
	m := module("Not_A_Name", "a.rego", goodRule, "a_test.rego", goodTest)
	if faults := CheckPolicyModule(&m); len(faults) != 1 || faults[0].Field != "metadata.name" {
		t.Errorf("the name of a PolicyModule: %v", faults)
	}
}

func TestAnExpiryThatHasPassedIsAWarning(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	p := pipes("p", func(s *v1alpha1.PipePolicySpec) {
		s.Subjects[0].Owner, s.Subjects[0].Reason = "o", "r"
		s.Subjects[0].ExpiresAt = &metav1.Time{Time: now}
	})
	if faults := CheckPipePolicy(&p); len(faults) > 0 {
		t.Error(faults)
	}
	if got := Warnings(&p, now); !slices.Equal(got, []string{"subject node expired: it permits nothing"}) {
		t.Error(got)
	}
	if got := Warnings(&p, now.Add(-30*24*time.Hour)); len(got) > 0 {
		t.Error(got)
	}
}

func TestMisspeltNamesInRegoAreRefused(t *testing.T) {
	for what, c := range map[string]struct{ from, to, want string }{
		"the package":                {"package pipeguard.admission", "package pipeguard.admision", "did you mean package pipeguard.admission?"},
		"the package's case":         {"package pipeguard.admission", "package pipeguard.Admission", "did you mean package pipeguard.admission?"},
		"the rule":                   {"findings contains", "finding contains", "did you mean findings?"},
		"the rule's case":            {"findings contains", "Findings contains", "did you mean findings?"},
		"a field of the input":       {"mount.guarded == true", "mount.guarded == true\n\tinput.namespce == 1", "did you mean input.namespace?"},
		"a field in the input":       {"mount.guarded == true", "input.kind.goup == 1\n\tmount.guarded", "did you mean input.kind.group?"},
		"a field of a list's entry":  {"mount.guarded == true", "input.mounts[_].guardd\n\tmount.guarded", "did you mean input.mounts"},
		"a label, which may be any":  {"mount.guarded == true", "mount.guarded\n\tinput.labels.anything == 1", ""},
		"a field of what was sent":   {"mount.guarded == true", "mount.guarded\n\tinput.object.spec.anything == 1", ""},
		"a helper of another name":   {"findings contains", "house contains 1\n\nfindings contains", ""},
		"a name that is of the rule": {"", "", ""},
	} {
		m := module("m", "a.rego", strings.Replace(goodRule, c.from, c.to, 1), "a_test.rego", passingTest)
		err := try(t, sources(t, m))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
