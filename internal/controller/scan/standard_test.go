package scan

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

const reportsRole = "pipeguard-webhook-reports"

// roles is the kind of the objects that standard reports belong to.
func roles() kind {
	k := kind{resource: "clusterroles"}
	k.gvk.Group, k.gvk.Version, k.gvk.Kind = "rbac.authorization.k8s.io", "v1", "ClusterRole"
	return k
}

func standards() []Standard { return []Standard{PolicyReport, OpenReports} }

// standardScanner writes reports of a standard kind, whose objects belong to a role.
func standardScanner(t *testing.T, a *apiServer, s Standard) *Scanner {
	t.Helper()
	a.put(roles(), "", reportsRole)
	scanner, _ := newScanner(t, a, func(o *Options) { o.Standard, o.StandardRole = s, reportsRole })
	return scanner
}

// standardReports are the objects of both kinds, by namespace/name.
func (a *apiServer) standardReports(s Standard) map[string]standardObject {
	a.mu.Lock()
	defer a.mu.Unlock()
	out, f := map[string]standardObject{}, standardForm(s)
	for _, k := range f.kinds() {
		for key, o := range a.kinds[k.path("")] {
			var r standardObject
			text, _ := json.Marshal(o)
			if err := json.Unmarshal(text, &r); err != nil {
				a.t.Error(err)
			}
			out[key] = r
		}
	}
	return out
}

type standardObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	standardReport    `json:",inline"`
}

// absent answers every request about the standard kinds as an API server without them does.
func absent(s Standard) func(http.ResponseWriter, *http.Request) bool {
	return answering("/apis/"+standardForm(s).namespaced.gvk.Group+"/", -1, 404, metav1.StatusReasonNotFound)
}

// published compiles the schema of a published definition, which knows no other fields than those that it lists.
func published(t *testing.T, k kind) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "crds", k.gvk.Group+"_"+k.resource+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == k.gvk.Version })
	if i < 0 || d.Spec.Group != k.gvk.Group || d.Spec.Names.Kind != k.gvk.Kind || d.Spec.Names.Plural != k.resource ||
		(d.Spec.Scope == apiextensionsv1.NamespaceScoped) != k.namespaced {
		t.Fatalf("%s defines no %s", d.Name, k.gvk)
	}
	raw, err := json.Marshal(d.Spec.Versions[i].Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	closed(schema)
	schema["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object"}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("crd.json", schema); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("crd.json")
}

// closed forbids fields that a schema does not list: the API server would drop them, and the report would differ for ever.
func closed(schema map[string]any) {
	if properties, ok := schema["properties"].(map[string]any); ok {
		schema["additionalProperties"] = false
		for _, p := range properties {
			closed(p.(map[string]any))
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		closed(items)
	}
}

// hostile are findings with everything that an object and a policy may bring, made safe as all findings are.
func hostile(t *testing.T, n int) []v1alpha1.ReportResult {
	t.Helper()
	text := strings.Repeat("<\x00\x1b[2J\u202e\"\\\n", 4000)
	var all []v1alpha1.ReportResult
	add := func(h *head, j *Judged) {
		for _, c := range newVerdict(judgedKinds()[0], h, j).results {
			all = append(all, c.ReportResult)
		}
	}
	for i := range n {
		h := head{namespace: "default", name: fmt.Sprintf("p%04d", i), uid: strings.Repeat("u", 36), controller: text}
		f := finding("PG001", []string{"deny", "warn", "audit", "ALLOW\n"}[i%4], text, strings.Repeat("p", 253))
		f.Text, f.Severity = text, []string{"critical", "high", "info", text}[i/4%4]
		add(&h, &Judged{Findings: []Finding{f}})
	}
	h := head{namespace: "default", name: text, uid: "u", isMirror: true}
	add(&h, &Judged{Failure: text})
	return all
}

func TestStandardReportsAreAsPublished(t *testing.T) {
	for _, s := range standards() {
		f := standardForm(s)
		parts, err := divide("sha256:1", v1alpha1.ReportSummary{}, hostile(t, maxResults+1))
		if err != nil || len(parts) < 2 {
			t.Fatalf("%d parts, %v", len(parts), err)
		}
		for _, k := range f.kinds() {
			schema := published(t, k)
			for i, d := range f.documents(parts) {
				text, err := json.Marshal(d.object(metav1.TypeMeta{APIVersion: k.apiVersion(), Kind: k.gvk.Kind}, metav1.ObjectMeta{Name: "pipeguard"}, clock))
				if err != nil {
					t.Fatal(err)
				}
				if len(text) > 3<<19-32<<10 {
					t.Errorf("%s: part %d has %d bytes, too many for etcd", s, i, len(text))
				}
				var o any
				if err := json.Unmarshal(text, &o); err != nil {
					t.Fatal(err)
				}
				if err := schema.Validate(o); err != nil {
					t.Errorf("%s: part %d: %.1000v", s, i, err)
				}
				back, err := f.decode(text)
				if err != nil || cmp.Diff(d.timeless(), back.timeless()) != "" {
					t.Errorf("%s: part %d is not read as it was written: %v", s, i, err)
				}
			}
		}
	}
}

func TestAFindingInTheWordsOfTheStandardKinds(t *testing.T) {
	given := v1alpha1.ReportResult{
		Rule: "PG001", Effect: "deny", Severity: "critical", Field: "spec.volumes[0]", Message: "m", Policies: []string{"disks"}, StaticPod: true,
		Subject: v1alpha1.ReportSubject{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "p", UID: "u", Controller: "ReplicaSet/r"},
	}
	want := standardResult{
		Source: "pipeguard", Policy: "disks", Rule: "PG001", Category: "Windows host access", Severity: "critical", Result: "fail", Scored: true, Message: "m",
		Resources: []standardReference{{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "p", UID: "u"}},
		Properties: map[string]string{
			"effect": "deny", "severity": "critical", "field": "spec.volumes[0]", "controller": "ReplicaSet/r", "policies": "disks", "staticPod": "true",
		},
	}
	if d := cmp.Diff(want, standardResultOf(OpenReports, "pipeguard", given)); d != "" {
		t.Errorf("OpenReports (-want +got):\n%s", d)
	}
	want.Severity = "high" // the working group's definition has no more
	if d := cmp.Diff(want, standardResultOf(PolicyReport, "pipeguard", given)); d != "" {
		t.Errorf("PolicyReport (-want +got):\n%s", d)
	}
	for effect, result := range map[string]string{"warn": "warn", "audit": "warn", "error": "error", "other": "fail"} {
		given.Effect = effect
		if r := standardResultOf(PolicyReport, "pipeguard", given); r.Result != result || r.Scored != (result == "fail") || r.Properties["effect"] != effect {
			t.Errorf("%s is %+v", effect, r)
		}
	}
	for _, policies := range [][]string{nil, {"a", "b"}} {
		given.Policies = policies
		if r := standardResultOf(PolicyReport, "pipeguard", given); r.Policy != "pipeguard" || r.Properties["policies"] != strings.Join(policies, ",") {
			t.Errorf("%q: %+v", policies, r)
		}
	}
}

func TestSummariesOfAllPartsTogetherCountEveryFinding(t *testing.T) {
	all := results(2*maxResults+1, "m") // the first of which stands for 50 more that are not listed
	parts, err := divide("sha256:1", v1alpha1.ReportSummary{Judged: 9, Deny: 2*maxResults + 51, Warn: 2, Audit: 3, Error: 4}, all)
	if err != nil {
		t.Fatal(err)
	}
	var sum standardSummary
	for i, d := range standardForm(OpenReports).documents(parts) {
		r := d.(standardReport)
		sum = sum.plus(r.Summary, 1)
		if i > 0 && r.Summary.Fail != int32(len(r.Results)) {
			t.Errorf("part %d counts %+v of %d", i, r.Summary, len(r.Results))
		}
	}
	if want := (standardSummary{Fail: 2*maxResults + 51, Warn: 5, Error: 4}); sum != want {
		t.Errorf("together %+v, want %+v", sum, want)
	}
}

func TestStandardReportsFollowTheFindings(t *testing.T) {
	for _, s := range standards() {
		a := newAPIServer(t)
		a.pod("default", "a", "deny.PG001.disks_warn.PG004")
		a.put(judgedKinds()[9], "", "pv", marked("deny.PG007"))
		scanner := standardScanner(t, a, s)
		complete(t, scanner)
		got := a.standardReports(s)
		r, cluster := got["default/pipeguard"], got["/pipeguard"]
		if len(got) != 2 || r.Summary != (standardSummary{Fail: 1, Warn: 1}) || cluster.Summary != (standardSummary{Fail: 1}) {
			t.Fatalf("%s: %+v", s, got)
		}
		want := []metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: reportsRole, UID: "uid--" + reportsRole}}
		if d := cmp.Diff(want, r.OwnerReferences); d != "" || r.Labels[managedByLabel] != "pipeguard" || r.Kind != standardForm(s).namespaced.gvk.Kind {
			t.Errorf("%s: %s has the labels %v, owners (-want +got):\n%s", s, r.Kind, r.Labels, d)
		}
		if *r.Results[0].Timestamp != (standardTime{Seconds: clock.Unix()}) || r.Results[0].Policy != "disks" {
			t.Errorf("%s: %+v", s, r.Results[0])
		}
		// Another role of the same name is another owner: the cluster takes the old one for gone.
		a.put(roles(), "", reportsRole, func(o object) { o.meta()["uid"] = "another" })
		complete(t, scanner)
		if owners := a.standardReports(s)["default/pipeguard"].OwnerReferences; len(owners) != 1 || owners[0].UID != "another" {
			t.Errorf("%s: owners %+v", s, owners)
		}
		a.pod("default", "a", "")
		a.remove(judgedKinds()[9], "", "pv")
		complete(t, scanner)
		if got := a.standardReports(s); len(got) > 0 {
			t.Errorf("%s: without findings there is %v", s, got)
		}
	}
}

// Whatever happens, standard reports are written at most as often as our own.
func TestStandardReportsAreWrittenNoMoreOftenThanOurs(t *testing.T) {
	for _, s := range standards() {
		a := newAPIServer(t)
		scanner := standardScanner(t, a, s)
		group := standardForm(s).namespaced.gvk.Group
		for _, c := range []struct {
			change string
			do     func()
			want   int // writes of standard reports
		}{
			{"a finding comes", func() { a.pod("default", "a", "deny.PG001") }, 1},
			{"nothing happens", func() {}, 0},
			{"many pods without findings come", func() {
				for i := range 100 {
					a.pod("default", fmt.Sprint("b", i), "")
				}
			}, 0},
			{"many pods with findings come", func() {
				for i := range maxResults {
					a.pod("default", fmt.Sprint("c", i), "deny.PG001")
				}
			}, 2},
			{"they go", func() {
				for i := range maxResults {
					a.remove(judgedKinds()[0], "default", fmt.Sprint("c", i))
				}
			}, 2},
		} {
			c.do()
			a.asked()
			complete(t, scanner)
			own, standard := 0, 0
			for _, w := range writes(a.asked()) {
				if strings.Contains(w, group) {
					standard++
				} else {
					own++
				}
			}
			if standard != c.want || standard > own {
				t.Errorf("%s: %s: %d writes, want %d; %d of our own", s, c.change, standard, c.want, own)
			}
		}
		// A new leader finds them as they should be.
		again := standardScanner(t, a, s)
		a.pod("default", "a", "deny.PG001")
		a.asked()
		again.options.Now = scanner.options.Now
		complete(t, again)
		for _, w := range writes(a.asked()) {
			if strings.Contains(w, group) && !strings.Contains(w, "clusterroles") {
				// The role was put anew with the same uid, so that there is nothing to write.
				t.Errorf("%s: a new leader writes %s", s, w)
			}
		}
	}
}

func TestAClusterWithoutTheStandardKindHarmsNothing(t *testing.T) {
	for _, s := range standards() {
		a := newAPIServer(t)
		a.pod("default", "a", "deny.PG001")
		scanner := standardScanner(t, a, s)
		a.fault = absent(s)
		for range 2 {
			a.asked()
			complete(t, scanner)
			var asked int
			for _, r := range a.asked() {
				if strings.Contains(r, standardForm(s).namespaced.gvk.Group) {
					asked++
				}
			}
			if asked != 2 {
				t.Errorf("%s: %d requests about kinds that are not there", s, asked)
			}
		}
		m := metricsOf(t, scanner)
		if m["pipeguard_standard_reports state=absent"] != 1 || m["pipeguard_scan_errors_total"] != 0 || m["pipeguard_standard_report_errors_total"] != 0 {
			t.Errorf("%s: metrics %v", s, m)
		}
		a.fault = nil
		complete(t, scanner)
		if m := metricsOf(t, scanner); len(a.standardReports(s)) != 1 || m["pipeguard_standard_reports state=written"] != 1 || m["pipeguard_standard_reports state=absent"] != 0 {
			t.Errorf("%s: with the kinds there is %v, metrics %v", s, a.standardReports(s), m)
		}
	}
}

func TestWhatFailsForStandardReportsIsTheirsAlone(t *testing.T) {
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"no right to list":      answering("GET /apis/openreports.io/", -1, 403, metav1.StatusReasonForbidden),
		"no right to write":     answering("POST /apis/openreports.io/", -1, 403, metav1.StatusReasonForbidden),
		"refused as invalid":    answering("POST /apis/openreports.io/", -1, 422, metav1.StatusReasonInvalid),
		"the role is not there": answering("/clusterroles/", -1, 404, metav1.StatusReasonNotFound),
	} {
		a := newAPIServer(t)
		a.pod("default", "a", "deny.PG001.disks")
		scanner := standardScanner(t, a, OpenReports)
		a.fault = fault
		complete(t, scanner)
		m := metricsOf(t, scanner)
		if m["pipeguard_standard_reports state=failing"] != 1 || m["pipeguard_standard_report_errors_total"] == 0 || m["pipeguard_scan_errors_total"] != 0 ||
			m["pipeguard_scan_last_completed_timestamp_seconds"] == 0 {
			t.Errorf("%s: metrics %v", name, m)
		}
		if _, ok := a.reports()["default/pipeguard"]; !ok || len(a.standardReports(OpenReports)) > 0 {
			t.Errorf("%s: our own report: %v, standard reports: %v", name, ok, a.standardReports(OpenReports))
		}
		if n, ok := scanner.Violations("disks"); n != 1 || !ok {
			t.Errorf("%s: violations %d, %v", name, n, ok)
		}
		a.fault = nil
		complete(t, scanner)
		if len(a.standardReports(OpenReports)) != 1 {
			t.Errorf("%s: nothing is written after that", name)
		}
	}
}

func TestStandardReportsOfOthersAreNotTouched(t *testing.T) {
	for _, s := range standards() {
		a := newAPIServer(t)
		f := standardForm(s)
		a.pod("default", "a", "deny.PG001")
		ours := func(o object) { o.meta()["labels"] = map[string]any{managedByLabel: "pipeguard"} }
		a.put(f.namespaced, "default", "pipeguard", func(o object) { o.meta()["labels"] = map[string]any{managedByLabel: "kyverno"} })
		a.put(f.namespaced, "default", "theirs", ours)
		a.put(f.namespaced, "default", "pipeguard-2")
		a.put(f.cluster, "", "pipeguard")
		before := a.standardReports(s)
		complete(t, standardScanner(t, a, s))
		if after := a.standardReports(s); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: they changed from %+v to %+v", s, before, after)
		}
	}
}

// Other products write a report for each object of the cluster. They are not listed, whether one has the name of ours or not.
func TestStandardReportsOfOthersAreNotListed(t *testing.T) {
	for _, s := range standards() {
		a := newAPIServer(t)
		f := standardForm(s)
		theirs := func(o object) { o.meta()["labels"] = map[string]any{managedByLabel: "kyverno"} }
		for i := range 30 {
			a.put(f.namespaced, "default", fmt.Sprintf("%036d", i), theirs)
		}
		a.namespace("taken")
		a.put(f.namespaced, "taken", "pipeguard", theirs)
		a.put(f.cluster, "", "pipeguard", theirs)
		a.put(judgedKinds()[9], "", "pv", marked("deny.PG007"))
		a.pod("taken", "a", "deny.PG001")
		a.pod("default", "a", "deny.PG001")
		before := a.standardReports(s)
		scanner := standardScanner(t, a, s)
		scanner.standard.lists.pageSize = 1
		a.listed = map[string]int{}
		complete(t, scanner)
		complete(t, scanner)
		if n := a.listed[f.namespaced.path("")] + a.listed[f.cluster.path("")]; n != 1 {
			t.Errorf("%s: %d reports are listed, want our own, which the first of two passes wrote", s, n)
		}
		after := a.standardReports(s)
		if _, ok := after["default/pipeguard"]; !ok || len(after) != len(before)+1 {
			t.Errorf("%s: %d reports after %d", s, len(after), len(before))
		}
		for key, o := range before {
			if !reflect.DeepEqual(after[key], o) {
				t.Errorf("%s: %s changed to %+v", s, key, after[key])
			}
		}
		// Each pass tells of those whose name is taken, and goes on.
		if m := metricsOf(t, scanner); m["pipeguard_standard_report_errors_total"] != 4 || m["pipeguard_standard_reports state=written"] != 1 || m["pipeguard_scan_errors_total"] != 0 {
			t.Errorf("%s: metrics %v", s, m)
		}
	}
}

func TestNoStandardReportsWithoutTheOption(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001")
	scanner, _ := newScanner(t, a)
	complete(t, scanner)
	for _, r := range a.asked() {
		if strings.Contains(r, "openreports") || strings.Contains(r, "wgpolicy") || strings.Contains(r, "clusterroles") {
			t.Errorf("asked %s", r)
		}
	}
	for name := range metricsOf(t, scanner) {
		if strings.Contains(name, "standard") {
			t.Errorf("there is a metric %s", name)
		}
	}
	if err := errors.Join(NoStandard.Check(), PolicyReport.Check(), OpenReports.Check()); err != nil {
		t.Error(err)
	}
	if err := Standard("policyreport\n").Check(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a kind that is none: %v", err)
	}
}
