package admission

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// randomPlacement says in some way where a pod may run.
func randomPlacement(g *rand.Rand, s *corev1.PodSpec) {
	keys := []string{corev1.LabelOSStable, corev1.LabelOSStable, corev1.LabelOSStable, "beta.kubernetes.io/os", "pool"}
	names := []string{"linux", "linux", "windows", "Linux", ""}
	if g.IntN(4) == 0 {
		s.OS = &corev1.PodOS{Name: corev1.OSName(names[g.IntN(len(names))])}
	}
	if g.IntN(4) == 0 {
		s.NodeSelector = map[string]string{keys[g.IntN(len(keys))]: names[g.IntN(len(names))], "pool": "a"}
	}
	expression := func() corev1.NodeSelectorRequirement {
		e := corev1.NodeSelectorRequirement{Key: keys[g.IntN(len(keys))], Operator: []corev1.NodeSelectorOperator{"In", "In", "NotIn", "Exists", "DoesNotExist", "Gt"}[g.IntN(6)]}
		for range []int{1, 1, 1, 0, 2, 32, 33}[g.IntN(7)] {
			e.Values = append(e.Values, names[g.IntN(len(names))])
		}
		return e
	}
	var terms []corev1.NodeSelectorTerm
	for range []int{0, 1, 1, 2, 3, 32, 33}[g.IntN(7)] {
		var term corev1.NodeSelectorTerm
		for range []int{0, 1, 2, 2, 3, 32, 33}[g.IntN(7)] {
			term.MatchExpressions = append(term.MatchExpressions, expression())
		}
		if g.IntN(8) == 0 {
			term.MatchFields = []corev1.NodeSelectorRequirement{{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}}
		}
		terms = append(terms, term)
	}
	if len(terms) > 3 { // most of them are proven, else all would be as good as never
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions[:min(len(terms[i].MatchExpressions), 31)],
				corev1.NodeSelectorRequirement{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}})
		}
	}
	switch affinity := (&corev1.NodeAffinity{}); g.IntN(4) {
	case 0, 1:
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
		s.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	case 2:
		for _, term := range terms {
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: 1, Preference: term})
		}
		s.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	}
}

// fits says whether a kubelet of Windows, whose node has these labels, runs the pod.
func fits(t *testing.T, s *corev1.PodSpec, node nodelabels.Set) bool {
	t.Helper()
	if s.OS != nil && s.OS.Name != corev1.Windows || !nodelabels.SelectorFromSet(s.NodeSelector).Matches(node) {
		return false
	}
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil || s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	operators := map[corev1.NodeSelectorOperator]selection.Operator{"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist, "Gt": selection.GreaterThan}
	return slices.ContainsFunc(s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		for _, e := range term.MatchExpressions {
			r, err := nodelabels.NewRequirement(e.Key, operators[e.Operator], e.Values)
			if err != nil || !r.Matches(node) {
				return false
			}
		}
		return len(term.MatchExpressions) > 0
	})
}

func TestAPodThatIsProvenToBeOfLinuxRunsOnNoNodeOfWindows(t *testing.T) {
	proven, others := 0, 0
	for seed := range uint64(3000) {
		g := rand.New(rand.NewPCG(seed, 2))
		var s corev1.PodSpec
		randomPlacement(g, &s)
		raw := marshal(t, &corev1.Pod{Spec: s})
		obj, err := readObject([]byte(strings.Replace(string(raw), "{", `{"apiVersion":"v1","kind":"Pod",`, 1)), podKind, plenty())
		if err != nil {
			t.Fatal(err)
		}
		got := obj.pod.placement.isLinux()
		if want := isLinuxSpec(&s); got != want {
			t.Fatalf("seed %d: proven %t, want %t: %s", seed, got, want, raw)
		}
		node := nodelabels.Set{corev1.LabelOSStable: "windows", "beta.kubernetes.io/os": "linux", "pool": []string{"a", "linux", "Linux"}[g.IntN(3)]}
		if got && fits(t, &s, node) {
			t.Fatalf("seed %d: a node of Windows runs %s", seed, raw)
		}
		if got {
			proven++
		} else {
			others++
		}
	}
	if proven < 500 || others < 500 {
		t.Errorf("%d proven, %d not: the test says little", proven, others)
	}
}

const linuxTerm = `{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["linux"]}]}`

func affinityOf(terms string) string {
	return `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":` + terms + `}}}`
}

func TestWhatCannotBeReadDoesNotProveThatAPodIsOfLinux(t *testing.T) {
	for fields, want := range map[string]bool{
		`"os":{"name":"linux"}`:                                  true,
		`"os":{"n\u0061me":"linux"}`:                             true,
		`"nodeSelector":{"kubernetes.io/os":"linux"}`:            true,
		`"nodeSelector":{"pool":"a","kubernetes.io/os":"linux"}`: true,
		affinityOf(`[` + linuxTerm + `]`):                        true,
		affinityOf(`[` + linuxTerm + `,` + linuxTerm + `]`):      true,
		`"os":null`:                                        false,
		`"os":"linux"`:                                     false,
		`"os":["linux"]`:                                   false,
		`"os":{"name":null}`:                               false,
		`"os":{"name":["linux"]}`:                          false,
		`"os":{"name":"linux","name":"windows"}`:           false,
		`"os":{"name":"windows","name":"linux"}`:           false,
		`"os":{"Name":"linux"}`:                            false,
		`"os":{"name":"LINUX"}`:                            false,
		`"os":{"name":"linux "}`:                           false,
		`"OS":{"name":"linux"}`:                            false,
		`"nodeSelector":{"kubernetes.io/os":"windows"}`:    false,
		`"nodeSelector":{"beta.kubernetes.io/os":"linux"}`: false,
		`"nodeSelector":{"kubernetes.io/os":true}`:         false,
		`"nodeSelector":{"kubernetes.io/os":["linux"]}`:    false,
		`"nodeSelector":["kubernetes.io/os","linux"]`:      false,
		`"nodeSelector":"kubernetes.io/os=linux"`:          false,
		`"nodeSelector":{"kubernetes.io/os":"linux","kubernetes.io/\u006fs":"windows"}`: false,
		affinityOf(`[]`):                     false,
		affinityOf(`null`):                   false,
		affinityOf(`{}`):                     false,
		affinityOf(`[null]`):                 false,
		affinityOf(`[{}]`):                   false,
		affinityOf(`["linux"]`):              false,
		affinityOf(`[` + linuxTerm + `,{}]`): false,
		affinityOf(`[{"matchFields":[{"key":"kubernetes.io/os","operator":"In","values":["linux"]}]}]`):                                                  false,
		affinityOf(`[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":"linux"}]}]`):                                               false,
		affinityOf(`[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["linux","windows"]}]}]`):                                   false,
		affinityOf(`[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["linux"],"values":["windows"]}]}]`):                        false,
		affinityOf(`[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"NotIn","values":["linux"]}]}]`):                                          false,
		affinityOf(`[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"NotIn","values":["darwin","windows"]}]}]`):                               true,
		affinityOf(`[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"Exists","values":["linux"]}]}]`):                                         false,
		affinityOf(`[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"in","values":["linux"]}]}]`):                                             false,
		`"affinity":{"podAffinity":{},"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":` + linuxTerm + `}]}}`: false,
		`"tolerations":[{"key":"kubernetes.io/os","value":"linux"}]`:                                                                                     false,
		`"affinity":"linux"`:               false,
		`"affinity":[{"nodeAffinity":{}}]`: false,
		`"nodeName":"linux"`:               false,
	} {
		object := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"kubernetes.io/os":"linux"}},"spec":{%s,"volumes":[{"name":"v","hostPath":{"path":"/"}}]}}`, fields)
		obj, err := readObject([]byte(object), podKind, plenty())
		if err != nil {
			t.Fatalf("%s: %v", fields, err)
		}
		if got := obj.pod.placement.isLinux(); got != want || len(obj.pod.hostPaths) > 0 == want {
			t.Errorf("%s: proven %t, want %t, %d host paths", fields, got, want, len(obj.pod.hostPaths))
		}
	}
}

// readsObjects is a module that is asked about every object.
const readsObjects = `package pipeguard.admission

# METADATA
# title: Nobody is called so
# custom: {code: TEST1}
findings contains {"code": "TEST1", "effect": "deny", "field": "metadata.name"} if input.object.metadata.name == "nobody"
`

func onLinux(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"} }

// dangerous has everything that a pod can be refused for.
func dangerous(p *corev1.Pod) {
	hostProcess := &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
	p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true", "example.com/a": "b"}
	p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess}
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: hostProcess}
	p.Spec.Volumes = append(p.Spec.Volumes, testPod(`C:\`).Spec.Volumes...)
}

// Policies of an operator's own, which read objects, are asked about pods of Linux too, and hear of nothing that concerns Windows.
func TestAPodOfLinuxIsNotConcerned(t *testing.T) {
	parameters := DefaultParameters()
	parameters.HostProcess, parameters.EqualPower = ActionDeny, ActionDeny
	for name, r := range map[string]*Reviewer{
		"the built-in rules": newReviewer(t, parameters),
		"and a module": newReviewer(t, parameters, func(o *ReviewerOptions) {
			o.Engine = newPolicyEngine(t, Policies{Parameters: parameters}, map[string]string{"own.rego": readsObjects})
		}),
	} {
		for _, kind := range holders() {
			for _, linux := range []bool{true, false} {
				p := with(testPod(csiPipe), dangerous)
				if linux {
					onLinux(p)
				}
				res := r.Review(t.Context(), requestFor(t, asKind(t, kind, p), nil))
				if res.Allowed != linux || linux && len(res.Findings) > 0 || res.Plain != linux {
					t.Errorf("%s: %s, of Linux %t: allowed %t, plain %t, %v", name, kind.Kind, linux, res.Allowed, res.Plain, res.Codes)
				}
			}
		}
	}
}

// Flannel's DaemonSet says by required node affinity alone that it is for Linux, which proves its template. The controller of DaemonSets puts the name of a node in
// the place of that affinity: it proves nothing, and a tenant could write it too.
func TestAffinityProvesATemplateAndNotThePodsOfADaemonSet(t *testing.T) {
	parameters := DefaultParameters()
	parameters.HostPaths = ActionDeny
	r := newReviewer(t, parameters)
	flannel := func(term corev1.NodeSelectorTerm) *corev1.Pod {
		p := testPod("/opt/cni/bin", "/etc/cni/net.d")
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}
		return p
	}
	onLinux := []corev1.NodeSelectorRequirement{{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}}
	onNode := []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}}
	for name, c := range map[string]struct {
		term    corev1.NodeSelectorTerm
		allowed bool
	}{
		"the system":                  {corev1.NodeSelectorTerm{MatchExpressions: onLinux}, true},
		"the system and a node":       {corev1.NodeSelectorTerm{MatchExpressions: onLinux, MatchFields: onNode}, true},
		"a node, as of a DaemonSet's": {corev1.NodeSelectorTerm{MatchFields: onNode}, false},
	} {
		for _, kind := range holders() {
			res := r.Review(t.Context(), requestFor(t, asKind(t, kind, flannel(c.term)), nil))
			if res.Allowed != c.allowed || !c.allowed && res.Code != "PG011" {
				t.Errorf("%s: %s: allowed %t, %s", name, kind.Kind, res.Allowed, res.Code)
			}
		}
	}
}

// A template of Linux may hold anything. One that becomes a template of Windows is not what it was, although its containers and mounts are.
func TestATemplateThatIsNoLongerOfLinuxIsRefused(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for _, change := range []func(*corev1.Pod){nil, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }} {
		for _, kind := range holders() {
			old, now := with(testPod(csiPipe), onLinux), testPod(csiPipe)
			if change != nil {
				change(now)
			}
			res := r.Review(t.Context(), requestFor(t, asKind(t, kind, now), asKind(t, kind, old)))
			if res.Allowed || res.Code != "PG001" {
				t.Errorf("%s: allowed %t, unchanged %t, %s", kind.Kind, res.Allowed, res.Unchanged, res.Code)
			}
			res = r.Review(t.Context(), requestFor(t, asKind(t, kind, old), asKind(t, kind, now)))
			if !res.Allowed {
				t.Errorf("%s becomes one of Linux: %s", kind.Kind, res.Message)
			}
		}
	}
}

// What is stored without being asked about is judged by the scan and by review as well, so that a great number of paths is no matter in a pod of Linux.
func TestAPodOfLinuxMayHaveManyPaths(t *testing.T) {
	p := with(testPod(), onLinux)
	for i := range 2000 {
		v := corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/" + strings.Repeat("x/", 500)}}}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: v.Name, SubPath: "a"})
	}
	if res := newReviewer(t, DefaultParameters()).Review(t.Context(), requestFor(t, marshal(t, p), nil)); !res.Allowed || len(res.Findings) > 0 {
		t.Errorf("allowed %t: %s", res.Allowed, res.Message)
	}
}
