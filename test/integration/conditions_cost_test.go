//go:build !windows

package integration

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
	"github.com/pipeguard/pipeguard/test/routes"
)

// bounds are those that the chart's conditions test before anything else.
type bounds struct{ items, mounts, path int }

var boundsOf = regexp.MustCompile(`size\(\) > (\d+)\) \|\|(?s:.*)\.sum\(\) > (\d+)\) \|\|(?s:.*)path\.size\(\) <= (\d+) `)

// ignoring registers the recorder as a webhook that lets pass what nobody has judged, and returns it with the bounds.
func ignoring(t *testing.T) (*cluster.Recorder, bounds) {
	t.Helper()
	return ignoringBy(t, shared.chart)
}

// ignoringBy does so with a chart that was rendered with other values.
func ignoringBy(t *testing.T, chart cluster.Chart) (*cluster.Recorder, bounds) {
	t.Helper()
	recorder := recordedBy(t, chart)
	c, err := chart.Configuration(cluster.ObjectConfiguration, recorder.Port, recorder.CA)
	if err != nil {
		t.Fatal(err)
	}
	conditions := c.Webhooks[0].MatchConditions
	m := boundsOf.FindStringSubmatch(conditions[len(conditions)-1].Expression)
	if m == nil {
		t.Fatalf("no bounds in:\n%s", conditions[len(conditions)-1].Expression)
	}
	items, itemsErr := strconv.Atoi(m[1])
	mounts, mountsErr := strconv.Atoi(m[2])
	path, pathErr := strconv.Atoi(m[3])
	if err := errors.Join(itemsErr, mountsErr, pathErr); err != nil {
		t.Fatal(err)
	}
	var stored admissionregistrationv1.ValidatingWebhookConfiguration
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKey{Name: "recorder"}, &stored); err != nil {
		t.Fatal(err)
	}
	changed(t, &stored, func() {
		for i := range stored.Webhooks {
			stored.Webhooks[i].FailurePolicy = new(admissionregistrationv1.Ignore)
			stored.Webhooks[i].TimeoutSeconds = new(int32(30)) // the recorder may be slow, and that is not what this is about
		}
	})
	return recorder, bounds{items, mounts, path}
}

// sized is a pod's specification with so many of everything; the volumes' paths have so many characters.
func sized(volumes, containers, inits, length int) corev1.PodSpec {
	s := spec("")
	base := s.Containers[0]
	s.Containers = nil
	for i := range volumes {
		path := fmt.Sprintf("/var/%d/", i)
		s.Volumes = append(s.Volumes, hostPath(fmt.Sprintf("v%d", i), path+strings.Repeat("x", max(1, length-len(path)))))
	}
	for i := range containers {
		c := *base.DeepCopy()
		c.Name = fmt.Sprintf("c%d", i)
		c.SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(false)}}
		for j := range min(volumes, 3) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprintf("v%d", j), MountPath: fmt.Sprintf("/m%d", j)})
		}
		s.Containers = append(s.Containers, c)
	}
	for i := range inits {
		c := *base.DeepCopy()
		c.Name = fmt.Sprintf("i%d", i)
		s.InitContainers = append(s.InitContainers, c)
	}
	return s
}

// mounting is a pod's specification with so many mounts in each of its containers, each with a subPath of 128 characters.
func mounting(volumes, containers, inits, length, each int) corev1.PodSpec {
	s := sized(volumes, containers, inits, length)
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			list[i].VolumeMounts = nil
			for j := range each {
				volume := fmt.Sprintf("v%d", (i*each+j)%volumes)
				list[i].VolumeMounts = append(list[i].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: fmt.Sprintf("/m%d", j), SubPath: strings.Repeat("x", 128)})
			}
		}
	}
	return s
}

// everyKind puts a specification into an object of each kind that is asked about.
func everyKind(space string, s corev1.PodSpec) []client.Object {
	out := routes.Of(corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: routes.Labels()}, Spec: s})
	for _, o := range out {
		o.SetNamespace(space)
		o.SetName("sized-" + strings.ToLower(rand.Text()))
	}
	return out
}

// Under failurePolicy Ignore a condition that costs too much lets an object pass that nobody has looked at. So whatever is
// too large to be looked at is sent.
func TestWhateverTheSizeAnObjectWithAPipeIsSent(t *testing.T) {
	recorder, limits := ignoring(t)
	space := namespace(t, "sized")
	guilty := func(s corev1.PodSpec, first bool) corev1.PodSpec {
		at := len(s.Volumes)
		if first {
			at = 0
		}
		s.Volumes = slices.Insert(s.Volumes, at, hostPath("guilty", pipe))
		return s
	}
	for name, c := range map[string]struct {
		volumes, containers, inits, length int
	}{
		"small":                       {1, 1, 0, 10},
		"just below every bound":      {limits.items - 1, limits.items, limits.items, limits.path},
		"one volume too many":         {limits.items, 1, 0, limits.path},
		"five thousand volumes":       {5000, 1, 0, 100},
		"many containers":             {1, 2000, 0, 10},
		"many init containers":        {1, 1, 2000, 10},
		"containers, and long paths":  {100, 1000, 1000, 1000},
		"one character too many":      {3, 1, 0, limits.path + 1},
		"paths of 100,000 characters": {10, 1, 0, 100_000},
		"one path, 1,000,000 of them": {1, 1, 0, 1_000_000},
		"long paths, just so many":    {limits.items - 1, 1, 0, 3000},
	} {
		for _, first := range []bool{true, false} {
			all := everyKind(space, guilty(sized(c.volumes, c.containers, c.inits, c.length), first))
			if c.volumes*c.length > 200*limits.path || c.containers+c.inits > 1000 {
				all = all[:1] // each takes a second; that all routes have the same bounds is seen with the others
			}
			for _, o := range all {
				err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll)
				if apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInvalid(err) {
					continue // it cannot be stored
				}
				if err != nil {
					t.Errorf("%s: %T: %v", name, o, err)
				} else if !sent(recorder)[kindName(o)+"/"+o.GetName()] {
					t.Errorf("%s, first %t: a %T passed without being sent", name, first, o)
				}
			}
		}
	}
}

// A subPath may lead out of a volume whose path is plain, and the API server refuses ".." between slashes alone.
func TestWhereverASubPathLeadsOutOfItsVolumeTheObjectIsSent(t *testing.T) {
	recorder, limits := ignoring(t)
	space := namespace(t, "sized")
	const out = `..\..\Device\NamedPipe\csi-proxy-disk-v1`
	expectSent := func(name string, s corev1.PodSpec) {
		all := everyKind(space, s)
		if name != "small" {
			all = all[:1] // each takes a second; that all routes have the same conditions is seen with the small ones
		}
		for _, o := range all {
			if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
				t.Errorf("%s: %T: %v", name, o, err)
			} else if !sent(recorder)[kindName(o)+"/"+o.GetName()] {
				t.Errorf("%s: a %T passed without being sent: %+v", name, o, s.Containers[len(s.Containers)-1].VolumeMounts[:1])
			}
		}
	}
	for name, s := range map[string]corev1.PodSpec{
		"small":                    mounting(1, 1, 1, 10, 1),
		"as many mounts as may be": mounting(limits.items, limits.items/2, limits.items/2, limits.path, limits.mounts/limits.items),
		"one mount too many":       mounting(1, 1, 1, 10, limits.mounts/2+1),
		"thousands":                mounting(1, 2, 2, 10, 3000),
	} {
		for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
			mounts := list[len(list)-1].VolumeMounts
			last := &mounts[len(mounts)-1]
			before := *last
			for _, last.SubPath = range []string{out, `a\..\..\b`, `. .\NamedPipe\csi-proxy-disk-v1`, `.:.`, "a b", "a\x00b", "a\u202eb", "\u00e9", strings.Repeat("x", 129)} {
				if last.SubPath == out || name == "small" {
					expectSent(name, s)
				}
			}
			*last = corev1.VolumeMount{Name: before.Name, MountPath: before.MountPath, SubPathExpr: `..\$(X)`}
			expectSent(name, s)
			*last = before
		}
	}
}

// What is plain and within the bounds stays within the API server. Those who look at it afterwards, review and the scan, have
// room to judge it.
func TestAPlainObjectWithinTheBoundsIsNotSentNorRefused(t *testing.T) {
	recorder, limits := ignoring(t)
	r, space := reviewer(t), namespace(t, "sized")
	most := func() corev1.PodSpec {
		return mounting(limits.items, limits.items/4, limits.items/4, limits.path, 2*limits.mounts/limits.items)
	}
	expressions := most()
	for _, list := range [][]corev1.Container{expressions.Containers, expressions.InitContainers} {
		for i := range list {
			for j := range list[i].VolumeMounts {
				m := &list[i].VolumeMounts[j]
				m.SubPath, m.SubPathExpr = "", "$(X)"+strings.Repeat("x", 124)
			}
		}
	}
	var plain []client.Object
	for _, s := range []corev1.PodSpec{
		sized(limits.items, limits.items, limits.items, limits.path),
		most(), expressions,
		mounting(1, 1, 1, limits.path, limits.mounts/2),
	} {
		plain = append(plain, everyKind(space, s)...)
	}
	for _, o := range plain {
		if res := judged(t, r, o); !res.Allowed || len(res.Findings) > 0 {
			t.Errorf("a plain %T is not judged, or refused: %v", o, res.Codes)
		}
		if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%T: %v", o, err)
		}
		if sent(recorder)[kindName(o)+"/"+o.GetName()] {
			t.Errorf("a plain %T was sent", o)
		}
	}
	if limits.items < 200 || limits.mounts < 2000 || limits.path < 200 {
		t.Errorf("bounds of %+v: real pods exceed them", limits)
	}
}

// largestAffinity is the largest that is read, with this value at its end. It is one of Linux if the value is windows.
func largestAffinity(last string) *corev1.Affinity {
	var terms []corev1.NodeSelectorTerm
	for i := range 32 {
		var term corev1.NodeSelectorTerm
		for j := range 32 {
			e := corev1.NodeSelectorRequirement{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpNotIn, Values: slices.Repeat([]string{strings.Repeat("x", 63)}, 32)}
			if j == 31 {
				e.Values[31] = "windows"
			}
			if i == 31 && j == 31 {
				e.Values[31] = last
			}
			term.MatchExpressions = append(term.MatchExpressions, e)
		}
		terms = append(terms, term)
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// The last value that is read of the largest affinity decides.
func TestTheLargestAffinityIsReadToItsEnd(t *testing.T) {
	recorder, _ := ignoring(t)
	space := namespace(t, "sized")
	with := func(last string) *corev1.Pod {
		p := pod(space, "", pipe)
		p.Spec.Affinity = largestAffinity(last)
		return p
	}
	ofLinux, other := with("windows"), with("darwin")
	for p, want := range map[*corev1.Pod]bool{ofLinux: false, other: true} {
		if err := at(t).api.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if got := sent(recorder)["Pod/"+p.Name]; got != want {
			t.Errorf("sent %t, want %t", got, want)
		}
	}
}

// At all bounds at once, with the guilty thing at the end of everything, no entry costs more than the API server spends. What
// could be both goes to one entry, the one that fails closed if there is one.
func TestAtTheBoundsEachEntryIsSentWhatItIsFor(t *testing.T) {
	at(t)
	t.Run("by default", func(t *testing.T) { sentAtTheBounds(t, shared.chart, entries.ProcessPrefix) })
	t.Run("paths fail closed", func(t *testing.T) { sentAtTheBounds(t, rendered(t, "parameters.hostPaths=Deny"), entries.PathPrefix) })
}

// sentAtTheBounds checks it by one chart, whose entries with a prefix get what could be both.
func sentAtTheBounds(t *testing.T, chart cluster.Chart, both string) {
	t.Helper()
	recorder, limits := ignoringBy(t, chart)
	space := namespace(t, "sized")
	annotations := map[string]string{}
	domain := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + "." + strings.Repeat("d", 61)
	for i := range limits.items - 1 {
		annotations[fmt.Sprintf("%s/%063d", domain, i)] = ""
	}
	selector := map[string]string{} // of which one key is looked up
	for i := range 300 {
		selector[fmt.Sprintf("%s/%063d", domain, i)] = strings.Repeat("x", 63)
	}
	path := func(s *corev1.PodSpec) {
		const start = `C:\var\lib\kubelet\`
		s.Volumes[len(s.Volumes)-1].HostPath.Path = start + strings.Repeat("x", limits.path-len(start))
	}
	process := func(s *corev1.PodSpec) {
		s.HostNetwork = true
		for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} { // all of them or none
			for i := range list {
				list[i].SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}
			}
		}
	}
	for name, c := range map[string]struct {
		change     func(*corev1.PodSpec)
		annotation bool
		larger     int
		want       []string // prefixes
	}{
		"nothing":                      {func(*corev1.PodSpec) {}, false, 0, nil},
		"a host path":                  {path, false, 0, []string{entries.PathPrefix}},
		"a HostProcess container":      {process, false, 0, []string{entries.ProcessPrefix}},
		"an annotation":                {func(*corev1.PodSpec) {}, true, 0, []string{entries.ProcessPrefix}},
		"both":                         {func(s *corev1.PodSpec) { path(s); process(s) }, false, 0, []string{both}},
		"an annotation and a path":     {path, true, 0, []string{both}},
		"nothing, too large":           {func(*corev1.PodSpec) {}, false, 1, []string{""}},
		"a host path, too large":       {path, false, 1, []string{""}},
		"a HostProcess, too large":     {process, false, 1, []string{""}},
		"an annotation, too large":     {func(*corev1.PodSpec) {}, true, 1, []string{""}},
		"all of it, and far too large": {func(s *corev1.PodSpec) { path(s); process(s) }, true, 300, []string{""}},
	} {
		s := mounting(limits.items+c.larger, limits.items/4, limits.items/4, limits.path, 2*limits.mounts/limits.items)
		s.Affinity, s.NodeSelector = largestAffinity("darwin"), selector
		c.change(&s)
		p := named(&corev1.Pod{Spec: s}, space)
		p.Annotations = maps.Clone(annotations)
		if c.annotation {
			p.Annotations["microsoft.com/hostprocess-container"] = "true"
		}
		if err := at(t).api.Client.Create(t.Context(), p, client.DryRunAll); err != nil && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		} else if err != nil {
			t.Fatalf("%s cannot be stored: %v", name, err)
		}
		var want []string
		for _, prefix := range c.want {
			want = append(want, prefix+"pods.pipeguard.dev")
		}
		if got := sentBy(recorder)["Pod/"+p.Name]; !slices.Equal(got, want) {
			t.Errorf("%s: sent to %v, want %v", name, got, want)
		}
	}
}

// What both could be done by is asked about once, of every kind, whichever of the two entries fails closed.
func TestWhatCouldBeBothIsSentOnce(t *testing.T) {
	at(t)
	for prefix, value := range map[string]string{entries.ProcessPrefix: "parameters.hostProcess=Deny", entries.PathPrefix: "parameters.hostPaths=Deny"} {
		t.Run(value, func(t *testing.T) {
			recorder, space := recordedBy(t, rendered(t, value)), namespace(t, "both")
			s := spec("", `C:\var\lib\kubelet`)
			s.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}
			s.HostNetwork = true
			for _, o := range everyKind(space, s) {
				if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
					t.Errorf("%T: %v", o, err)
				}
				if got := sentBy(recorder)[kindName(o)+"/"+o.GetName()]; len(got) != 1 || !strings.HasPrefix(got[0], prefix) {
					t.Errorf("%T: sent to %v, want one that begins with %s", o, got, prefix)
				}
			}
		})
	}
}

func TestAPersistentVolumeWithALongPathIsSent(t *testing.T) {
	recorder, limits := ignoring(t)
	for _, length := range []int{limits.path + 1, 300_000, 1_000_000} {
		v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/" + strings.Repeat("x", length-1)}},
		}}
		v.Name = "sized-" + strings.ToLower(rand.Text())
		if err := at(t).api.Client.Create(t.Context(), v, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if !sent(recorder)["PersistentVolume/"+v.Name] {
			t.Errorf("a path of %d characters was not sent", length)
		}
	}
}

func kindName(o client.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndexByte(name, '.')+1:]
}
