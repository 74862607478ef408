package served

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func node(name string, state v1alpha1.NodeState, pipes ...string) v1alpha1.GuardedNode {
	return v1alpha1.GuardedNode{ObjectMeta: metav1.ObjectMeta{Name: name}, NodeReport: v1alpha1.NodeReport{State: state, Pipes: pipes}}
}

func TestTheBoundsAreThoseOfTheSchema(t *testing.T) {
	text, err := os.ReadFile("../../config/crd/pipeguard.dev_guardednodes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	pipes := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["pipes"]
	if *pipes.MaxItems != MaxPipes || *pipes.Items.Schema.MaxLength != maxName || pipes.Items.Schema.Pattern != name.String() {
		t.Errorf("the schema has %d of %d characters, %s", *pipes.MaxItems, *pipes.Items.Schema.MaxLength, pipes.Items.Schema.Pattern)
	}
}

func TestAReportIsBelievedInTheFormOfTheSchemaAlone(t *testing.T) {
	most := make([]string, MaxPipes)
	for i := range most {
		most[i] = fmt.Sprintf("pipe-%d", i)
	}
	for name, c := range map[string]struct {
		report v1alpha1.NodeReport
		known  bool
	}{
		"pipes":                        {v1alpha1.NodeReport{Pipes: []string{"csi-proxy-disk-v1", "a.b_c-d", "0"}}, true},
		"no pipe":                      {v1alpha1.NodeReport{Pipes: []string{}}, true},
		"as many as there may be":      {v1alpha1.NodeReport{Pipes: most}, true},
		"the longest name":             {v1alpha1.NodeReport{Pipes: []string{strings.Repeat("x", maxName)}}, true},
		"an earlier release":           {v1alpha1.NodeReport{}, false},
		"no answer":                    {v1alpha1.NodeReport{State: v1alpha1.NodeUnreachable, Pipes: []string{"a"}}, false},
		"one too many":                 {v1alpha1.NodeReport{Pipes: append(slices.Clone(most), "a")}, false},
		"a name too long":              {v1alpha1.NodeReport{Pipes: []string{strings.Repeat("x", maxName+1)}}, false},
		"no name":                      {v1alpha1.NodeReport{Pipes: []string{"a", ""}}, false},
		"capitals":                     {v1alpha1.NodeReport{Pipes: []string{"CSI-proxy-disk-v1"}}, false},
		"a path":                       {v1alpha1.NodeReport{Pipes: []string{`\\.\pipe\csi-proxy-disk-v1`}}, false},
		"a slash":                      {v1alpha1.NodeReport{Pipes: []string{"a/b"}}, false},
		"a control character":          {v1alpha1.NodeReport{Pipes: []string{"a\x1b[2Jb"}}, false},
		"a new line at the end":        {v1alpha1.NodeReport{Pipes: []string{"csi-proxy-disk-v1\n"}}, false},
		"a letter that looks alike":    {v1alpha1.NodeReport{Pipes: []string{"сsi-proxy-disk-v1"}}, false},
		"an end that no label has":     {v1alpha1.NodeReport{Pipes: []string{"csi-proxy-"}}, false},
		"a beginning that none has":    {v1alpha1.NodeReport{Pipes: []string{"-csi"}}, false},
		"a zero byte":                  {v1alpha1.NodeReport{Pipes: []string{"a\x00"}}, false},
		"a star":                       {v1alpha1.NodeReport{Pipes: []string{"csi-proxy-*"}}, false},
		"text that is not UTF-8":       {v1alpha1.NodeReport{Pipes: []string{"a\xffb"}}, false},
		"a direction of writing in it": {v1alpha1.NodeReport{Pipes: []string{"a\u202eb"}}, false},
	} {
		pipes, known := By(&c.report)
		if known != c.known || known && !slices.Equal(pipes, c.report.Pipes) || !known && pipes != nil {
			t.Errorf("%s: %q, %t", name, pipes, known)
		}
	}
}

func FuzzANameIsThatOfALabel(f *testing.F) {
	for _, seed := range []string{"csi-proxy-disk-v1", "a", "-", "A", "a..b", "a_", strings.Repeat("x", 63), strings.Repeat("x", 64), "a/b", "a\n", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pipe string) {
		faults := validation.IsQualifiedName(v1alpha1.LabelPipePrefix + pipe)
		if want := len(faults) == 0 && strings.ToLower(pipe) == pipe; isName(pipe) != want {
			t.Errorf("%q is a name: %t; of a label: %q", pipe, isName(pipe), faults)
		}
	})
}

func TestAPipeIsMissingWhereThatIsCertainAlone(t *testing.T) {
	disk, smb := "csi-proxy-disk-v1", "csi-proxy-smb-v1"
	guarding := node("a", v1alpha1.NodeGuarding, disk)
	denying := node("b", v1alpha1.NodeDenying, disk, smb)
	bare := node("c", v1alpha1.NodeLocal)
	bare.Pipes = []string{}
	old, away := node("d", v1alpha1.NodeGuarding), node("e", v1alpha1.NodeUnreachable, smb)
	silent := node("silent", v1alpha1.NodeGuarding, smb)
	for name, c := range map[string]struct {
		nodes      []v1alpha1.GuardedNode
		pipe, node string
		want       bool
	}{
		"one serves it":                     {[]v1alpha1.GuardedNode{guarding, bare}, disk, "", false},
		"none serves it":                    {[]v1alpha1.GuardedNode{guarding, bare}, smb, "", true},
		"a node that denies every call":     {[]v1alpha1.GuardedNode{guarding, denying}, smb, "", false},
		"no node reports":                   {nil, disk, "", false},
		"a node of an earlier release":      {[]v1alpha1.GuardedNode{guarding, old}, smb, "", false},
		"a node whose service is away":      {[]v1alpha1.GuardedNode{guarding, away}, smb, "", false},
		"all are silent":                    {[]v1alpha1.GuardedNode{silent}, disk, "", false},
		"a silent one serves nothing":       {[]v1alpha1.GuardedNode{guarding, silent}, smb, "", true},
		"a name that no report has":         {[]v1alpha1.GuardedNode{guarding}, "Odd{}", "", false},
		"no name":                           {[]v1alpha1.GuardedNode{guarding}, "", "", false},
		"this node serves it":               {[]v1alpha1.GuardedNode{guarding, bare}, disk, "a", false},
		"this one does not":                 {[]v1alpha1.GuardedNode{guarding, bare}, disk, "c", true},
		"this one does not, another is old": {[]v1alpha1.GuardedNode{guarding, old}, smb, "a", true},
		"this one is old":                   {[]v1alpha1.GuardedNode{guarding, old}, smb, "d", false},
		"this one is away":                  {[]v1alpha1.GuardedNode{guarding, away}, disk, "e", false},
		"this one is silent":                {[]v1alpha1.GuardedNode{guarding, silent}, disk, "silent", false},
		"this one does not report":          {[]v1alpha1.GuardedNode{guarding}, smb, "z", false},
		"an odd name on a node":             {[]v1alpha1.GuardedNode{guarding}, "odd-", "a", false},
	} {
		p := Collect(c.nodes, func(n *v1alpha1.GuardedNode) bool { return n.Name != "silent" })
		if got := p.Missing(c.pipe, c.node); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (*Pipes)(nil).Missing(disk, "") {
		t.Error("nothing is known, and a pipe is missing")
	}
}
