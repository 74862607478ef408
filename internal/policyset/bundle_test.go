package policyset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

var end = metav1.NewTime(time.Date(2026, 3, 1, 2, 0, 0, 999, time.FixedZone("", 3600)))

func azuredisk(change ...func(*v1alpha1.PipePolicySpec)) v1alpha1.PipePolicy {
	p := v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: "azuredisk"}, Spec: v1alpha1.PipePolicySpec{
		Pipes: []v1alpha1.PipePattern{"csi-proxy-Volume-*", "csi-proxy-disk-*"},
		Node:  v1alpha1.NodeRules{Methods: []string{"ListDiskIDs", "FormatVolume"}, PathPrefixes: []string{`C:\var\lib\kubelet`}, RequireToken: true},
		Subjects: []v1alpha1.Subject{
			{Name: "node", Namespace: "kube-system", ServiceAccounts: []string{"b", "a"}, Containers: []string{"azuredisk"}, Images: []string{"registry.example/azuredisk*"}},
			{Name: "migration", Namespace: "storage", Owner: "o", Reason: "r", ExpiresAt: &end, Node: v1alpha1.SubjectRules{
				Methods: []string{"PartitionDisk", "ListDiskIDs"}, PathPrefixes: []string{`C:\migration`}, Permits: []v1alpha1.Permit{"SystemDisk", "Reformat"},
				Shares: []string{`\\c\*`, `\\a\b`}, Services: []string{"y", "x"}, Limits: v1alpha1.CallLimits{Connections: new(int32(1)), CallsPerSecond: new(int32(2)), Burst: new(int32(3))},
			}},
		},
	}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func TestAPolicyIsPutIntoTheWordsOfNodes(t *testing.T) {
	got, err := nodeDocument([]v1alpha1.PipePolicy{azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Node.Action = v1alpha1.NodeLogOnly })}, admission.Parameters{})
	want := access.Document{Schema: access.Schema, Policies: []access.Policy{{
		Name: "azuredisk", Pipes: []string{"csi-proxy-disk-*", "csi-proxy-volume-*"}, LogOnly: true,
		Subjects: []access.Subject{
			{
				Name: "migration", Namespace: "storage", Owner: "o", Reason: "r", ExpiresAt: time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC),
				Permission: access.Permission{
					Methods: []string{"ListDiskIDs", "PartitionDisk"}, PathPrefixes: []string{`C:\migration`}, RequireToken: true, Permits: []string{access.Reformat, access.SystemDisk},
					Shares: []string{`\\a\b`, `\\c\*`}, Services: []string{"x", "y"}, Limits: access.Limits{Connections: 1, CallsPerSecond: 2, Burst: 3},
				},
			},
			{
				Name: "node", Namespace: "kube-system", ServiceAccounts: []string{"a", "b"}, Containers: []string{"azuredisk"}, Images: []string{"registry.example/azuredisk*"},
				Permission: access.Permission{Methods: []string{"FormatVolume", "ListDiskIDs"}, PathPrefixes: []string{`C:\var\lib\kubelet`}, RequireToken: true},
			},
		},
	}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestEqualObjectsGiveEqualContentInWhateverOrder(t *testing.T) {
	other := azuredisk()
	other.Name = "another"
	turned := azuredisk(func(s *v1alpha1.PipePolicySpec) {
		slices.Reverse(s.Pipes)
		slices.Reverse(s.Subjects)
		slices.Reverse(s.Node.Methods)
		s.Subjects[1].ServiceAccounts = []string{"a", "b"}
	})
	one, err := BundleSources{PipePolicies: []v1alpha1.PipePolicy{azuredisk(), other}}.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	two, err := BundleSources{PipePolicies: []v1alpha1.PipePolicy{other, turned}}.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(one.ACL), string(two.ACL)); diff != "" {
		t.Error(diff)
	}
}

// Nodes cannot say whether a container may be a HostProcess container, and get nothing that they would not enforce.
func TestWhatOnlyAdmissionAsksIsInNoBundle(t *testing.T) {
	hosts := azuredisk(func(s *v1alpha1.PipePolicySpec) {
		s.Subjects[0].HostProcess = &v1alpha1.HostProcess{RunAsUserNames: []string{"a"}}
	})
	alone := azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].HostProcess, s.Pipes = &v1alpha1.HostProcess{}, nil })
	alone.Name = "alone"
	plain, err := BundleSources{PipePolicies: []v1alpha1.PipePolicy{azuredisk()}}.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	got, err := BundleSources{PipePolicies: []v1alpha1.PipePolicy{hosts, alone}, Parameters: admission.Parameters{
		PipePolicies: map[string]admission.PipePolicy{"own": pipePolicy(&alone)},
	}}.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(plain.ACL), string(got.ACL)); diff != "" {
		t.Error(diff)
	}
	alone.Spec.Pipes = []v1alpha1.PipePattern{"*"}
	if _, err := (BundleSources{PipePolicies: []v1alpha1.PipePolicy{alone}}).Bundle(); err == nil {
		t.Error("a pattern of every pipe is taken")
	}
}

func TestWhatIsForPipesAloneIsAWarningBesideHostProcess(t *testing.T) {
	p := azuredisk(func(s *v1alpha1.PipePolicySpec) {
		s.Subjects[0].HostProcess, s.Pipes = &v1alpha1.HostProcess{}, nil
		s.Admission = v1alpha1.AdmissionRules{Action: v1alpha1.ActionAudit, Requirement: v1alpha1.RequireSubjectAndPrivileged}
	})
	told := strings.Join(Warnings(&p, end.Time), "\n")
	for _, want := range []string{"admission.requirement is for pipes", "admission.action is for pipes", "subject migration is permitted nothing"} {
		if strings.Count(told, want) != 1 {
			t.Errorf("%q is not said once: %s", want, told)
		}
	}
	p.Spec.Pipes, p.Spec.Admission = []v1alpha1.PipePattern{"csi-proxy-disk-*"}, v1alpha1.AdmissionRules{Action: v1alpha1.ActionAudit}
	if told := strings.Join(Warnings(&p, end.Time), "\n"); strings.Contains(told, "is for pipes") || strings.Contains(told, "permitted nothing") {
		t.Error(told)
	}
}

func TestHostProcessContainersOfAnyAccountOrImageAreAWarning(t *testing.T) {
	p := azuredisk(func(s *v1alpha1.PipePolicySpec) {
		s.Subjects = s.Subjects[:1]
		s.Subjects[0].HostProcess = &v1alpha1.HostProcess{}
	})
	before := azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Subjects = s.Subjects[:1] })
	told := len(Warnings(&p, end.Time)) - len(Warnings(&before, end.Time))
	p.Spec.Subjects[0].Images = nil
	before.Spec.Subjects[0].Images = nil
	if more := len(Warnings(&p, end.Time)) - len(Warnings(&before, end.Time)); told != 1 || more != 2 {
		t.Errorf("%d and %d warnings more", told, more)
	}
	p.Spec.Subjects[0].HostProcess.RunAsUserNames, p.Spec.Subjects[0].Images = []string{"a"}, azuredisk().Spec.Subjects[0].Images
	if diff := cmp.Diff(Warnings(new(azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Subjects = s.Subjects[:1] })), end.Time), Warnings(&p, end.Time)); diff != "" {
		t.Error(diff)
	}
}

func TestUnfitPoliciesAreNamed(t *testing.T) {
	for name, objects := range map[string][]v1alpha1.PipePolicy{
		"no pipes":               {azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Pipes = nil })},
		"a subject of nobody":    {azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].Namespace = "" })},
		"an unknown action":      {azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Node.Action = "Off" })},
		"one name twice":         {azuredisk(), azuredisk()},
		"an exception of nobody": {azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Subjects[1].Owner = "" })},
	} {
		_, err := BundleSources{PipePolicies: objects}.Bundle()
		if o, ok := errors.AsType[*ObjectError](err); !ok || o.Name != "azuredisk" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := (BundleSources{}).Bundle(); err != nil || !strings.Contains(string(b.ACL), `"policies":[]`) {
		t.Errorf("no policies: %s, %v", b.ACL, err)
	}
}

func TestAProcessIsPutIntoTheWordsOfNodes(t *testing.T) {
	object := azuredisk(func(s *v1alpha1.PipePolicySpec) {
		s.Node.RequireToken = false
		s.Subjects = []v1alpha1.Subject{{
			Name: "agent", Process: &v1alpha1.NodeProcess{Account: "S-1-5-18", Program: `C:\Agent\agent.exe`}, Node: v1alpha1.SubjectRules{Methods: []string{"ListDiskIDs"}},
		}}
	})
	got, err := BundleSources{PipePolicies: []v1alpha1.PipePolicy{object}, Parameters: inParameters(t, object)}.Bundle()
	const policy = `{"name":%q,"pipes":["csi-proxy-disk-*","csi-proxy-volume-*"],"subjects":[` +
		`{"name":"agent","account":"S-1-5-18","program":"C:\\Agent\\agent.exe","methods":["ListDiskIDs"],"pathPrefixes":["C:\\var\\lib\\kubelet"]}]}`
	want := fmt.Sprintf(`{"schema":%q,"policies":[`+policy+","+policy+`]}`, access.Schema, "azuredisk", "parameters/azuredisk")
	if diff := cmp.Diff(want, string(got.ACL)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// inParameters are the parameters with the spec of an object as the policy "azuredisk".
func inParameters(t *testing.T, p v1alpha1.PipePolicy) admission.Parameters {
	t.Helper()
	spec, err := json.Marshal(p.Spec)
	if err != nil {
		t.Fatal(err)
	}
	out, err := admission.ParseParameters(fmt.Appendf(nil, `{"pipePolicies": {%q: %s}}`, p.Name, spec), ReadPipePolicy)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAPolicyOfTheParametersIsInTheBundleAsAnObjectIs(t *testing.T) {
	object := azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Node.Action = v1alpha1.NodeLogOnly })
	parameters := inParameters(t, object)
	got, err := nodeDocument([]v1alpha1.PipePolicy{object}, parameters)
	if err != nil || len(got.Policies) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := got.Policies[0]
	want.Name = "parameters/azuredisk"
	if diff := cmp.Diff(want, got.Policies[1]); diff != "" {
		t.Errorf("(-object +parameters):\n%s", diff)
	}
	if diff := cmp.Diff(inParameters(t, object), parameters); diff != "" {
		t.Errorf("the parameters were changed:\n%s", diff)
	}
}

// What a subject may do on nodes is in the bundle, and no matter of admission, whose revision is in every denial.
func TestWhatIsForNodesChangesTheBundleAndNotTheRevision(t *testing.T) {
	of := func(p v1alpha1.PipePolicy) (revision, list string) {
		s := sources(t)
		s.Parameters = inParameters(t, p)
		modules, err := s.Assemble()
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(modules.Data)
		if err != nil {
			t.Fatal(err)
		}
		b, err := BundleSources{Parameters: s.Parameters}.Bundle()
		if err != nil {
			t.Fatal(err)
		}
		return string(data), string(b.ACL)
	}
	data, list := of(azuredisk())
	for name, c := range map[string]struct {
		change     func(*v1alpha1.PipePolicySpec)
		isForNodes bool
	}{
		"nothing":          {func(*v1alpha1.PipePolicySpec) {}, false},
		"LogOnly":          {func(s *v1alpha1.PipePolicySpec) { s.Node.Action = v1alpha1.NodeLogOnly }, true},
		"methods of all":   {func(s *v1alpha1.PipePolicySpec) { s.Node.Methods = []string{"ListDiskIDs"} }, true},
		"a subject's path": {func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].Node.PathPrefixes = []string{`C:\x`} }, true},
		"a process": {func(s *v1alpha1.PipePolicySpec) {
			s.Node.RequireToken = false
			s.Subjects = append(s.Subjects, v1alpha1.Subject{Name: "agent", Process: &v1alpha1.NodeProcess{Account: "S-1-5-18", Program: `C:\agent.exe`}})
		}, true},
		"a permit": {func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].Node.Permits = []v1alpha1.Permit{access.Reformat} }, true},
	} {
		otherData, otherList := of(azuredisk(c.change))
		if otherData != data || (otherList != list) != c.isForNodes {
			t.Errorf("%s: the data of admission is the same: %t, the list of nodes: %t", name, otherData == data, otherList == list)
		}
	}
	if other, _ := of(azuredisk(func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].Containers = nil })); other == data {
		t.Error("a container fewer is the same at admission")
	}
}
