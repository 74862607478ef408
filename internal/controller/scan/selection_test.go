package scan

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// takingPass is a pass that is given what it has judged in namespace "n".
type takingPass struct{ *pass }

func testPass() takingPass {
	return takingPass{&pass{
		Scanner: &Scanner{}, revision: "sha256:1",
		findings: map[string]map[string]*namespaceFindings{}, selection: newSelection(),
	}}
}

// take takes the findings in an object of the kind that has this place among judgedKinds.
func (p takingPass) take(t *testing.T, kind int, name string, found ...Finding) {
	t.Helper()
	k := judgedKinds()[kind]
	v := newVerdict(k, &head{name: name, namespace: "n", uid: "uid-" + name, version: "1"}, &Judged{Findings: found})
	if p.findings[k.resource] == nil {
		p.findings[k.resource] = map[string]*namespaceFindings{"n": {}}
	}
	p.findings[k.resource]["n"].take(v)
	if err := p.selection.add("n", kind, v.results); err != nil {
		t.Fatal(err)
	}
}

// results are those of all parts of the report.
func (p takingPass) results(t *testing.T) (out []v1alpha1.ReportResult) {
	t.Helper()
	parts, err := p.parts("n")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		out = append(out, part.Results...)
	}
	return out
}

// standsFor is how many findings a result is about.
func standsFor(r v1alpha1.ReportResult) int32 {
	var n int32
	if _, err := fmt.Sscanf(r.Message, "%d more findings", &n); err != nil || r.Subject.Name != "*" {
		return 1
	}
	return n
}

func known(code, effect, field string) Finding {
	f := finding(code, effect, field)
	f.Known = true
	return f
}

func several(n int, code, effect string) (out []Finding) {
	for i := range n {
		out = append(out, known(code, effect, fmt.Sprintf("f%03d", i)))
	}
	return out
}

func TestANamespaceListsSoManyResultsAndCountsTheOthers(t *testing.T) {
	p := testPass()
	for n := range maxListed + 10 {
		p.take(t, 0, fmt.Sprintf("p%05d", n), known("PG001", "deny", ""))
	}
	all := p.results(t)
	if len(all) != maxListed+1 {
		t.Fatalf("%d results", len(all))
	}
	want := v1alpha1.ReportResult{
		Rule: "PG001", Effect: "deny", Message: "10 more findings of this rule in objects of this kind, not listed one by one",
		Subject: v1alpha1.ReportSubject{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "*"},
	}
	if d := cmp.Diff(want, all[0]); d != "" {
		t.Errorf("the result about the others (-want +got):\n%s", d)
	}
	if d := cmp.Diff(all, p.results(t)); d != "" {
		t.Errorf("asked again (-first +second):\n%.500s", d)
	}
}

func TestWhatIsListedFirst(t *testing.T) {
	p := testPass()
	for n := range maxListed {
		p.take(t, 3, fmt.Sprintf("d%05d", n), several(20, "PG011", "audit")...)
	}
	for n := range maxListed / 4 {
		p.take(t, 3, fmt.Sprintf("w%05d", n), several(2, "PG004", "warn")...)
	}
	for n := range maxListed / 10 {
		p.take(t, 3, fmt.Sprintf("e%05d", n), several(20, "PG001", "deny")...)
	}
	p.take(t, 3, "victim", known("PG002", "deny", ""))
	p.take(t, 0, "pod", known("PG002", "deny", ""))
	listed, of := map[string]int32{}, map[string]int{}
	for _, r := range p.results(t) {
		if r.Subject.Name != "*" {
			listed[r.Effect]++
			of[r.Subject.Name]++
		}
	}
	if d := cmp.Diff(map[string]int32{"deny": maxListed}, listed); d != "" {
		t.Errorf("listed (-want +got):\n%s", d)
	}
	if of["victim"] != 1 || of["pod"] != 1 {
		t.Errorf("of others %d and %d findings are listed, want one each", of["victim"], of["pod"])
	}
	for n := range maxListed / 10 {
		if got := of[fmt.Sprintf("e%05d", n)]; got < 9 || got > 10 {
			t.Fatalf("of object %d %d findings are listed, of others %d", n, got, of["e00000"])
		}
	}
}

func TestWhatIsListedDoesNotDependOnTheOrderOfObjects(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	type taken struct {
		kind  int
		name  string
		found []Finding
	}
	var objects []taken
	for n := range 700 {
		o := taken{r.IntN(3), fmt.Sprintf("p%05d", n), several(r.IntN(30), "PG001", []string{"deny", "warn", "audit"}[r.IntN(3)])}
		for i := range o.found {
			o.found[i].Text = strings.Repeat("<", r.IntN(400))
		}
		objects = append(objects, o)
	}
	var want []v1alpha1.ReportResult
	for range 4 {
		p := testPass()
		for _, i := range r.Perm(len(objects)) {
			p.take(t, objects[i].kind, objects[i].name, objects[i].found...)
		}
		got := p.results(t)
		if want == nil {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("results (-first order +another):\n%.2000s", d)
		}
	}
	if size := sizeOfAll(t, want); len(want) > maxListed || size < maxListedBytes*9/10 || size > maxListedBytes+8<<10 {
		t.Errorf("%d results of %d bytes; want the bound of bytes to be what ends them", len(want), size)
	}
}

func sizeOfAll(t *testing.T, all []v1alpha1.ReportResult) (sum int) {
	t.Helper()
	for i := range all {
		size, err := sizeOf(&all[i])
		if err != nil {
			t.Fatal(err)
		}
		sum += size
	}
	return sum
}

// However many namespaces are full, together they are bounded, and one with little keeps all of it.
func TestFullNamespacesShareWhatThereIs(t *testing.T) {
	s := newSelection()
	add := func(namespace string, objects int) {
		for n := range objects {
			f := finding("PG001", "audit", "")
			f.Text = strings.Repeat("x", maxMessage)
			v := newVerdict(judgedKinds()[0], &head{name: fmt.Sprint("p", n), namespace: namespace, uid: "u"}, &Judged{Findings: []Finding{f}})
			if err := s.add(namespace, 0, v.results); err != nil {
				t.Fatal(err)
			}
			if held := heldBy(s); held != s.bytes || held > maxSelectedBytes {
				t.Fatalf("%d bytes are held, %d counted; %d are the most", held, s.bytes, maxSelectedBytes)
			}
		}
	}
	add("before", 5)
	for n := range 40 {
		add(fmt.Sprint("full", n), 900)
	}
	add("after", 5)
	for _, namespace := range []string{"before", "after"} {
		if got := len(s.of(namespace)); got != 5 {
			t.Errorf("%s: %d results, want all 5", namespace, got)
		}
	}
	least, most := len(s.of("full0")), 0
	for n := range 40 {
		got := len(s.of(fmt.Sprint("full", n)))
		least, most = min(least, got), max(most, got)
	}
	if least == 0 || least != most {
		t.Errorf("full namespaces list %d to %d results, want as many each", least, most)
	}
	if s.bytes < maxSelectedBytes/4 {
		t.Errorf("%d bytes are left of %d", s.bytes, maxSelectedBytes)
	}
}

func heldBy(s *selection) (sum int) {
	for _, l := range s.namespaces {
		sum += l.bytes
	}
	return sum
}

// What a page, or a list, has given before it begins again is not listed twice.
func TestWhatBeginsAgainIsListedOnce(t *testing.T) {
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"a page":  answering("continue=", 2, 503, metav1.StatusReasonServiceUnavailable),
		"a list":  answering("continue=", 2, 410, metav1.StatusReasonExpired),
		"nothing": nil,
	} {
		a := newAPIServer(t)
		for n := range 20 {
			a.pod("default", fmt.Sprintf("p%02d", n), "deny.PG001")
			a.put(judgedKinds()[3], "default", fmt.Sprintf("d%02d", n), marked("deny.PG001"))
		}
		a.fault = fault
		s, _ := newScanner(t, a, func(o *Options) { o.pageSize = 7 })
		complete(t, s)
		r := a.reports()["default/pipeguard"]
		of := map[string]int{}
		for _, result := range r.Results {
			of[result.Subject.Name]++
		}
		if len(r.Results) != 40 || len(of) != 40 || r.Summary.Deny != 40 {
			t.Errorf("%s: %d results of %d objects, %+v", name, len(r.Results), len(of), r.Summary)
		}
	}
}

// An answer that ends within a page has given some of its objects already.
func TestAPageThatIsCutShortIsListedOnce(t *testing.T) {
	p := testPass()
	p.take(t, 1, "of another kind", known("PG001", "deny", ""))
	p.selection.commit()
	c := p.newCollector(t.Context(), 0, judgedKinds()[0])
	c.restart()
	add := func(name string) {
		c.page()
		v := newVerdict(c.kind, &head{name: name, namespace: "n", uid: "u"}, &Judged{Findings: []Finding{known("PG001", "deny", "")}})
		if err := p.selection.add("n", c.order, v.results); err != nil {
			t.Fatal(err)
		}
	}
	listed := func(want ...string) {
		t.Helper()
		var got []string
		for _, found := range p.selection.of("n") {
			got = append(got, found.Subject.Name)
		}
		if d := cmp.Diff(want, got); d != "" || heldBy(p.selection) != p.selection.bytes {
			t.Errorf("%d bytes counted; listed (-want +got):\n%s", p.selection.bytes, d)
		}
	}
	add("a")
	add("b") // the page again
	listed("of another kind", "b")
	c.commit()
	add("c")
	listed("of another kind", "b", "c")
	c.page()
	listed("of another kind", "b")
	c.restart()
	listed("of another kind")
}

// crowd is an API server whose only objects are those of one tenant: of each namespaced kind some, with a volume of a long
// host path that one container mounts a hundred times. It counts the reports that it gets.
type crowd struct {
	t       *testing.T
	objects int // of each kind
	writes  map[string]int
	bytes   map[string]int // of all writes, by resource
	own     []v1alpha1.Report
}

const crowdMounts = 100

func (c *crowd) config() *rest.Config {
	return &rest.Config{Host: "http://api", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(c.answer(r))), Request: r}, nil
	})}
}

func (c *crowd) answer(r *http.Request) string {
	if r.Method == http.MethodPost {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			c.t.Error(err)
		}
		resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		c.writes[resource]++
		c.bytes[resource] += len(text)
		if resource == reportKind().resource {
			var report v1alpha1.PipeReport
			if err := json.Unmarshal(text, &report); err != nil {
				c.t.Error(err)
			}
			c.own = append(c.own, report.Report)
		}
		return `{"metadata":{"name":"x","namespace":"mallory","uid":"u","resourceVersion":"1"}}`
	}
	for _, k := range judgedKinds() {
		if k.namespaced && r.URL.Path == k.path("") {
			return c.list(k)
		}
	}
	return `{"kind":"List","apiVersion":"v1","items":[]}`
}

func (c *crowd) list(k kind) string {
	var mounts []any
	for i := range crowdMounts {
		mounts = append(mounts, map[string]any{"name": "v", "mountPath": fmt.Sprint("/", i)})
	}
	spec := map[string]any{
		"volumes":    []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": `C:\ProgramData\` + strings.Repeat("x", 900)}}},
		"containers": []any{map[string]any{"name": "c", "image": "i", "volumeMounts": mounts}},
	}
	var items []any
	for n := range c.objects {
		o := map[string]any{"metadata": map[string]any{"name": fmt.Sprint("o", n), "namespace": "mallory", "uid": fmt.Sprint(n), "resourceVersion": "1"}}
		template := map[string]any{"spec": spec}
		switch k.gvk.Kind {
		case "Pod":
			o["spec"] = spec
		case "PodTemplate":
			o["template"] = template
		case "CronJob":
			o["spec"] = map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
		default:
			o["spec"] = map[string]any{"template": template}
		}
		items = append(items, o)
	}
	text, err := json.Marshal(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": items})
	if err != nil {
		c.t.Error(err)
	}
	return string(text)
}

func TestATenantFillsNeitherMemoryNorEtcdWithItsReport(t *testing.T) {
	engine := engineOf(t, admission.DefaultParameters())
	reviewer, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	active, _ := engine.Active()
	c := &crowd{t: t, objects: 8, writes: map[string]int{}, bytes: map[string]int{}}
	s, _ := newScanner(t, nil, func(o *Options) {
		o.Config, o.Judge, o.Revision, o.Standard = c.config(), Reviews(reviewer, engine), active.Revision, OpenReports
	})
	complete(t, s)
	objects := int32(9 * c.objects)
	var listed []v1alpha1.ReportResult
	of, counted := map[string]int{}, int32(0)
	for _, r := range c.own {
		if want := (v1alpha1.ReportSummary{Judged: objects, Audit: crowdMounts * objects}); r.Summary != want {
			t.Errorf("the summary is %+v, want %+v", r.Summary, want)
		}
		for _, result := range r.Results {
			counted += standsFor(result)
			if result.Subject.Name == "*" {
				continue
			}
			listed = append(listed, result)
			of[result.Subject.Kind+" "+result.Subject.Name]++
		}
	}
	if counted != crowdMounts*objects {
		t.Errorf("the results are about %d findings, want %d", counted, crowdMounts*objects)
	}
	if size := sizeOfAll(t, listed); len(listed) > maxListed || size > maxListedBytes || size < maxListedBytes*9/10 {
		t.Errorf("%d results of %d bytes are listed", len(listed), size)
	}
	for name, n := range of {
		if n > maxPerObject {
			t.Errorf("%s has %d results", name, n)
		}
	}
	if len(of) != int(objects) {
		t.Errorf("%d of %d objects are listed", len(of), objects)
	}
	for _, k := range []kind{reportKind(), standardForm(OpenReports).namespaced} {
		// One part more than the bytes need, since none is filled to the last; standard reports say some things twice.
		if n, bytes := c.writes[k.resource], c.bytes[k.resource]; n == 0 || n > 2 || bytes > 2*maxListedBytes {
			t.Errorf("%s: %d writes of %d bytes", k.resource, n, bytes)
		}
	}
}
