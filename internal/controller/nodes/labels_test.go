package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/served"
)

// machines are the Nodes of a cluster, of which the labeller lists and patches labels.
type machines struct {
	client.Reader
	client.Writer

	labels  map[string]map[string]string // by Node
	written []string                     // names of Nodes
	gave    []string                     // by lists
	fail    error
	page    int // of a list; 0 for all
}

func (m *machines) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var given client.ListOptions
	given.ApplyOptions(opts)
	out, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok || out.Kind != "NodeList" || given.LabelSelector == nil || given.Limit == 0 {
		return fmt.Errorf("list %T %+v", list, given)
	}
	out.Items, out.Continue = nil, ""
	for _, name := range slices.Sorted(maps.Keys(m.labels)) {
		if !given.LabelSelector.Matches(labels.Set(m.labels[name])) || name <= given.Continue {
			continue
		}
		m.gave = append(m.gave, name)
		if m.page > 0 && len(out.Items) == m.page {
			out.Continue = out.Items[m.page-1].Name
			break
		}
		out.Items = append(out.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(m.labels[name])}})
	}
	return nil
}

func (m *machines) Patch(_ context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	m.written = append(m.written, o.GetName())
	if m.fail != nil {
		return m.fail
	}
	labels, ok := m.labels[o.GetName()]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, o.GetName())
	}
	var given client.PatchOptions
	given.ApplyOptions(opts)
	text, err := patch.Data(o)
	if err != nil {
		return err
	}
	var body map[string]map[string]map[string]*string
	if err := json.Unmarshal(text, &body); err != nil || given.FieldManager == "" || len(body) != 1 || len(body["metadata"]) != 1 || len(body["metadata"]["labels"]) == 0 {
		return fmt.Errorf("a patch of more than labels: %s", text)
	}
	for key, value := range body["metadata"]["labels"] {
		if faults := validation.IsQualifiedName(key); len(faults) > 0 || value != nil && len(validation.IsValidLabelValue(*value)) > 0 {
			return fmt.Errorf("label %q: %q", key, faults)
		}
		if value == nil {
			delete(labels, key)
		} else {
			labels[key] = *value
		}
	}
	o.SetLabels(maps.Clone(labels))
	return nil
}

// took returns which Nodes were written since it was called last.
func (m *machines) took() string {
	defer func() { m.written = nil }()
	return strings.Join(m.written, ",")
}

// pipesOf are the pipes of which the labels of a Node say that they are served.
func (m *machines) pipesOf(name string) string {
	var pipes []string
	for key, value := range m.labels[name] {
		if pipe, ok := strings.CutPrefix(key, v1alpha1.LabelPipePrefix); ok && value == v1alpha1.LabelPipeServed {
			pipes = append(pipes, pipe)
		}
	}
	slices.Sort(pipes)
	if (m.labels[name][v1alpha1.LabelServesPipes] == "true") != (len(pipes) > 0) {
		return "not as " + v1alpha1.LabelServesPipes + " says"
	}
	return strings.Join(pipes, ",")
}

func newMachines(names ...string) (*machines, *labeller) {
	m := &machines{labels: map[string]map[string]string{}}
	for _, name := range names {
		m.labels[name] = map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "windows", "pipe.example.com/a": "b"}
	}
	return m, &labeller{live: m, writer: m, log: zap.NewNop()}
}

// at is what is known of nodes some time after noon.
func at(after time.Duration, nodes ...v1alpha1.GuardedNode) *snapshot {
	s := snapshotOf(nodes...)
	s.now = noon.Add(after)
	s.heard = newHeartbeats(func() time.Time { return s.now }).last // by which a report of the future is of now
	return s
}

func TestNodesAreLabelledByWhatTheyServe(t *testing.T) {
	m, l := newMachines("win-1", "win-2")
	alive := func(after time.Duration) func(*v1alpha1.GuardedNode) {
		return func(n *v1alpha1.GuardedNode) { n.ReportedAt = metav1.NewTime(noon.Add(after)) }
	}
	both := func(after time.Duration, pipes ...string) *snapshot {
		return at(after, node("win-1", alive(after), serves("a", "b")), node("win-2", alive(after), serves(pipes...)))
	}
	for _, step := range []struct {
		what    string
		found   *snapshot
		written string
		one     string // pipes of win-1
		other   string
	}{
		{"no report", at(0), "", "", ""},
		{"a report of an earlier release", at(0, node("win-1")), "", "", ""},
		{"a report of no pipes", at(0, node("win-1", serves())), "", "", ""},
		{"a silent node", at(0, node("win-1", isQuiet, serves("a"))), "", "", ""},
		{"a report in no form", at(0, node("win-1", serves("a/b"))), "", "", ""},
		{"the first", both(0), "win-1", "a,b", ""},
		{"nothing new", both(time.Hour), "", "a,b", ""},
		{"the other", both(time.Hour, "c"), "win-2", "a,b", "c"},
		{"one more, at once", both(time.Hour+time.Second, "c", "d"), "", "a,b", "c"},
		{"one more, after a minute", both(time.Hour+labelEvery, "c", "d"), "win-2", "a,b", "c,d"},
		{"one less", both(time.Hour+2*labelEvery, "d"), "", "a,b", "c,d"},
		{"for not long", both(time.Hour+2*labelEvery+labelGrace-1, "d"), "", "a,b", "c,d"},
		{"for long", both(time.Hour+2*labelEvery+labelGrace, "d"), "win-2", "a,b", "d"},
		{"none", both(2 * time.Hour), "", "a,b", "d"},
		{"it is back", both(2*time.Hour+labelGrace-1, "d"), "", "a,b", "d"},
		{"none again", both(2*time.Hour + labelGrace + 1), "", "a,b", "d"},
		{"none for long", both(2*time.Hour + 2*labelGrace + 1), "win-2", "a,b", ""},
		{"its report is gone", at(3 * time.Hour), "", "a,b", ""},
		{"it is gone for long", at(3*time.Hour + labelGrace), "win-1", "", ""},
		{"nothing is left", at(4 * time.Hour), "", "", ""},
	} {
		if _, _, err := l.label(t.Context(), step.found); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		if got := m.took(); got != step.written || m.pipesOf("win-1") != step.one || m.pipesOf("win-2") != step.other {
			t.Errorf("%s: wrote %q, labels %v", step.what, got, m.labels)
		}
	}
	if diff := cmp.Diff(map[string]string{corev1.LabelHostname: "win-1", corev1.LabelOSStable: "windows", "pipe.example.com/a": "b"}, m.labels["win-1"]); diff != "" || len(l.nodes) != 0 {
		t.Errorf("afterwards, %d are remembered (-before +after):\n%s", len(l.nodes), diff)
	}
}

func TestASilentNodeLosesItsLabels(t *testing.T) {
	m, l := newMachines("win-1")
	n := node("win-1", serves("a")) // it reported a minute before noon
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "a"}, {v1alpha1.NodeSilentAfter - 2*time.Minute, "a"}, {v1alpha1.NodeSilentAfter, "a"}, {v1alpha1.NodeSilentAfter + labelGrace, ""},
	} {
		if _, _, err := l.label(t.Context(), at(step.after, n)); err != nil || m.pipesOf("win-1") != step.want {
			t.Errorf("after %s: %v, %v", step.after, m.labels, err)
		}
	}
}

// What a leader before this one wrote, or another hand, is put right.
func TestLabelsOfOthersHandsArePutRight(t *testing.T) {
	m, l := newMachines("win-1", "gone", "odd")
	m.page = 1
	m.labels["gone"][v1alpha1.LabelServesPipes], m.labels["gone"][v1alpha1.LabelPipePrefix+"a"] = "true", v1alpha1.LabelPipeServed
	m.labels["odd"][v1alpha1.LabelServesPipes], m.labels["odd"][v1alpha1.LabelPipePrefix+"a"] = "yes", "maybe"
	known := []v1alpha1.GuardedNode{node("win-1", serves("a")), node("odd", serves("a", "b"))}
	for i := range known {
		known[i].ReportedAt = metav1.NewTime(noon.Add(2 * time.Hour)) // and long after
	}
	step := func(after time.Duration, written string) {
		t.Helper()
		if _, _, err := l.label(t.Context(), at(after, known...)); err != nil || m.took() != written {
			t.Errorf("after %s: %v, %v", after, m.labels, err)
		}
	}
	step(0, "odd,win-1")
	step(labelGrace, "gone")
	if m.pipesOf("gone") != "" || m.pipesOf("odd") != "a,b" || m.pipesOf("win-1") != "a" {
		t.Errorf("labels %v", m.labels)
	}
	delete(m.labels["win-1"], v1alpha1.LabelPipePrefix+"a")
	m.labels["odd"][v1alpha1.LabelPipePrefix+"c"] = v1alpha1.LabelPipeServed
	step(labelGrace+relistLabels, "win-1")
	step(2*labelGrace+relistLabels, "odd")
	delete(m.labels["odd"], v1alpha1.LabelServesPipes)
	step(2*labelGrace+2*relistLabels, "odd")
	if m.pipesOf("odd") != "a,b" || m.pipesOf("win-1") != "a" {
		t.Errorf("labels %v", m.labels)
	}
	for key := range m.labels["win-1"] {
		if !isOurs(key) && key != corev1.LabelHostname && key != corev1.LabelOSStable && key != "pipe.example.com/a" {
			t.Errorf("label %s", key)
		}
	}
}

// A label of a pipe that is not served is found by a new leader, too, where another hand has taken away the label of all, or the Node does
// not say that it is one of Windows. Each Node is listed once.
func TestALabelIsFoundWithoutTheOneOfAll(t *testing.T) {
	m, l := newMachines("bare", "dropped", "none", "odd", "win-1")
	const pipe = v1alpha1.LabelPipePrefix + "a"
	m.labels["dropped"][pipe] = v1alpha1.LabelPipeServed
	m.labels["odd"][pipe], m.labels["odd"][v1alpha1.LabelServesPipes], m.labels["odd"][corev1.LabelOSStable] = v1alpha1.LabelPipeServed, "true", "linux"
	m.labels["bare"] = map[string]string{v1alpha1.LabelServesPipes: "true", pipe: v1alpha1.LabelPipeServed}
	m.labels["linux"] = map[string]string{corev1.LabelOSStable: "linux"}
	for _, after := range []time.Duration{0, labelGrace} {
		m.gave = nil
		found := at(after, node("win-1", serves("a")), node("dropped", serves()))
		if _, _, err := l.label(t.Context(), found); err != nil {
			t.Error(err)
		}
		slices.Sort(m.gave)
		if diff := cmp.Diff([]string{"bare", "dropped", "none", "odd", "win-1"}, m.gave); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	}
	for name, has := range m.labels {
		if _, ok := has[pipe]; ok != (name == "win-1") {
			t.Errorf("Node %s: %v", name, has)
		}
	}
}

// The label of all that serve a pipe stays as long as a label of one.
func TestTheLabelOfAllGoesLast(t *testing.T) {
	m, l := newMachines("win-1")
	m.labels["win-1"][v1alpha1.LabelServesPipes], m.labels["win-1"][v1alpha1.LabelPipePrefix+"a"] = "true", v1alpha1.LabelPipeServed
	for i, step := range []struct {
		after time.Duration
		want  string
	}{{0, "a"}, {relistLabels - 1, "a,b"}, {relistLabels, "b"}, {relistLabels + labelGrace, ""}} {
		if i == 1 { // found with the next list, when the grace of the others ends
			m.labels["win-1"][v1alpha1.LabelPipePrefix+"b"] = v1alpha1.LabelPipeServed
		}
		if _, _, err := l.label(t.Context(), at(step.after)); err != nil || m.pipesOf("win-1") != step.want {
			t.Errorf("after %s: %v, %v", step.after, m.labels, err)
		}
	}
}

// A node decides how often it reports, and what; not how often it is written.
func TestANodeCannotCauseAStormOfWrites(t *testing.T) {
	m, l := newMachines("win-1")
	const steps = 360 // of ten seconds, as often as a report is made
	most := 0
	for i := range steps {
		n := node("win-1", func(n *v1alpha1.GuardedNode) {
			n.ReportedAt = metav1.NewTime(noon.Add(2 * time.Hour))
			for j := range served.MaxPipes {
				n.Pipes = append(n.Pipes, fmt.Sprintf("pipe-%d-%d", i, j))
			}
		})
		if _, _, err := l.label(t.Context(), at(time.Duration(i)*10*time.Second, n)); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(m.labels["win-1"]))
	}
	if got := len(m.written); got > steps/6 || got < steps/12 {
		t.Errorf("%d writes in an hour", got)
	}
	if bound := served.MaxPipes * (2 + int(labelGrace/labelEvery)); most > bound {
		t.Errorf("%d labels at a time, want at most %d", most, bound)
	}
}

func TestManyNodesAreLabelledInTurns(t *testing.T) {
	var nodes []v1alpha1.GuardedNode
	m, l := newMachines()
	for i := range 2*maxLabelled + 1 {
		name := fmt.Sprintf("win-%03d", i)
		nodes = append(nodes, node(name, serves("a")))
		m.labels[name] = map[string]string{}
	}
	for _, want := range []int{maxLabelled, maxLabelled, 1, 0} {
		written, more, err := l.label(t.Context(), at(0, nodes...))
		if err != nil || written != want || len(m.written) != want || more != (want == maxLabelled) {
			t.Errorf("%d written, %t, %v, want %d", written, more, err, want)
		}
		m.took()
	}
}

func TestANodeThatCannotBeWrittenIsTriedAgainLater(t *testing.T) {
	m, l := newMachines("win-1")
	m.fail = errors.New("forbidden")
	n, missing := node("win-1", serves("a")), node("win-9", serves("a"))
	for _, step := range []struct {
		after   time.Duration
		written string
		fails   bool
	}{{0, "win-1,win-9", true}, {time.Second, "", false}, {labelEvery, "win-1,win-9", true}, {2 * labelEvery, "win-1,win-9", false}} {
		if step.after == 2*labelEvery {
			m.fail = nil
		}
		_, _, err := l.label(t.Context(), at(step.after, n, missing))
		if got := m.took(); got != step.written || (err != nil) != step.fails || step.fails && !errors.Is(err, m.fail) {
			t.Errorf("after %s: wrote %q, %v", step.after, got, err)
		}
	}
	if m.pipesOf("win-1") != "a" {
		t.Errorf("labels %v", m.labels)
	}
}

func TestFaultsOfLabelsKeepNoStatusFromBeingWritten(t *testing.T) {
	s := newServer()
	s.policies["a"] = policy("a", decides)
	s.put(node("win-1", serves("a")))
	c := newCounter(s, atNoon)
	m, l := newMachines("win-1")
	m.fail, c.labeller = errors.New("forbidden"), l
	if written, err := c.count(t.Context()); err != nil || written != 2 || s.policies["a"].Status.Nodes == nil {
		t.Errorf("%d written, %v", written, err)
	}
	l.reset()
	m.fail = nil
	if _, err := c.count(t.Context()); err != nil || m.pipesOf("win-1") != "a" {
		t.Errorf("labels %v, %v", m.labels, err)
	}
}
