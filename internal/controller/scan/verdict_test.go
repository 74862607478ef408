package scan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

func podVerdict(findings ...Finding) *verdict {
	return newVerdict(judgedKinds()[0], &head{name: "p", namespace: "n", uid: "u", version: "1"}, &Judged{Findings: findings})
}

func TestUnknownEffectRefuses(t *testing.T) {
	for _, effect := range []string{"", "Deny", "DENY", "allow", "Warn", "warn ", "error", "none"} {
		v := podVerdict(finding("PG001", effect, "", "disks"))
		if v.summary.Deny != 1 || v.results[0].Effect != "deny" || len(v.violated) != 1 {
			t.Errorf("effect %q: %+v", effect, v)
		}
	}
}

func TestObjectCountsOnceForEachPolicyThatRefusesIt(t *testing.T) {
	v := podVerdict(
		finding("PG010", "deny", "", "b", "a"),
		finding("PG010", "deny", "", "a"),
		finding("PG009", "warn", "", "warned"),
		finding("PG008", "audit", "", "recorded"),
	)
	if d := cmp.Diff([]string{"a", "b"}, v.violated); d != "" {
		t.Errorf("denied (-want +got):\n%s", d)
	}
}

func TestTextsOfAResultAreInertAndBounded(t *testing.T) {
	evil := "\x1b[2J\u202e" + strings.Repeat("x", 5000)
	h := &head{name: "p", namespace: "n", uid: "u", version: "1", controller: evil}
	f := finding(evil, "deny", evil)
	f.Severity, f.Text = evil, evil
	for _, j := range []Judged{{Findings: []Finding{f}}, {Failure: evil}} {
		r := newVerdict(judgedKinds()[0], h, &j).results[0]
		for name, text := range map[string]string{
			"rule": r.Rule, "severity": r.Severity, "field": r.Field, "message": r.Message, "controller": r.Subject.Controller,
		} {
			if len(text) > maxMessage || !isInert(text) {
				t.Errorf("%s = %q", name, text)
			}
		}
		if text, _ := json.Marshal(r); len(text) > 16<<10 {
			t.Errorf("a result of %d bytes", len(text))
		}
	}
}

func TestOnlyPodsAreStaticPods(t *testing.T) {
	h := &head{name: "p", namespace: "n", uid: "u", version: "1", isMirror: true}
	for _, k := range judgedKinds() {
		v := newVerdict(k, h, &Judged{Findings: []Finding{finding("PG001", "deny", "")}})
		if got, want := v.results[0].StaticPod, k.gvk.Kind == "Pod"; got != want {
			t.Errorf("%s: staticPod = %v", k.gvk.Kind, got)
		}
	}
}

func TestObjectWithTooManyFindingsSaysHowManyAreNotListed(t *testing.T) {
	var findings []Finding
	for n := range 300 {
		findings = append(findings, finding("PG004", "warn", fmt.Sprintf("w%03d", n)))
	}
	for n := range 90 {
		findings = append(findings, finding("PG001", "deny", fmt.Sprintf("d%03d", n)))
	}
	v := podVerdict(findings...)
	if d := cmp.Diff(v1alpha1.ReportSummary{Judged: 1, Deny: 90, Warn: 300}, v.summary); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
	if len(v.results) != maxPerObject+1 {
		t.Fatalf("%d results", len(v.results))
	}
	for i, r := range v.results[:90] {
		if r.Effect != "deny" {
			t.Errorf("result %d is %s: what is refused comes first", i, r.Effect)
		}
	}
	last := v.results[maxPerObject]
	if last.Rule != "PG004" || last.Effect != "warn" || !strings.HasPrefix(last.Message, "290 more findings") {
		t.Errorf("the last result is %+v", last)
	}
}

func TestSlotWithTooManyFindingsSaysHowManyAreNotListed(t *testing.T) {
	k := judgedKinds()[0]
	s := &namespaceFindings{}
	for range maxListed + 10 {
		s.take(podVerdict(finding("PG001", "deny", "")))
	}
	all := s.all(k, "n")
	if len(all) != maxListed+1 || s.summary.Deny != maxListed+10 {
		t.Fatalf("%d results, deny %d", len(all), s.summary.Deny)
	}
	want := v1alpha1.ReportResult{
		Rule: "PG001", Effect: "deny", Message: "10 more findings of this rule in objects of this kind, not listed one by one",
		Subject: v1alpha1.ReportSubject{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "*"},
	}
	if d := cmp.Diff(want, all[maxListed]); d != "" {
		t.Errorf("the last result (-want +got):\n%s", d)
	}
	if again := s.all(k, "n"); len(again) != len(all) {
		t.Errorf("asked again, %d results", len(again))
	}
}

// Every finding is in the results or in the number of those that are not listed, whatever the findings are.
func TestNoFindingIsDropped(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var findings []Finding
		for range r.IntN(400) {
			f := finding([]string{"PG001", "PG004", "", "custom\x1b"}[r.IntN(4)], []string{"deny", "warn", "audit", "?"}[r.IntN(4)], fmt.Sprint(r.IntN(5)))
			f.Known = r.IntN(2) == 0
			findings = append(findings, f)
		}
		v := podVerdict(findings...)
		total := int32(0)
		for _, result := range v.results {
			n := int32(1)
			if _, err := fmt.Sscanf(result.Message, "%d more findings", &n); err != nil {
				n = 1
			}
			total += n
		}
		counted := int32(0)
		for _, n := range v.counts {
			counted += n
		}
		if want := int32(len(findings)); total != want || counted != want || findingsOf(v) != want {
			t.Fatalf("%d findings: %d in results, %d counted, %d in the summary", want, total, counted, findingsOf(v))
		}
	}
}

func findingsOf(v *verdict) int32 { return findings(v.summary) }

// Templates make pods, and these are counted. What somebody permits is no matter of its mode.
func TestAPodCountsOnceForEachSubjectInItsOtherMode(t *testing.T) {
	a, b := admission.OtherMode{Policy: "disks", Subject: "a", HostProcess: true}, admission.OtherMode{Policy: "agents", Subject: "b"}
	of := func(effect string, modes ...admission.OtherMode) Finding {
		f := finding("PG005", effect, "")
		f.OtherModes = modes
		return f
	}
	high := of("audit", a)
	high.Severity = "high"
	judged := &Judged{Findings: []Finding{of("deny", a), of("deny", a, b), high, of("warn", admission.OtherMode{Policy: "permitted"})}}
	p := &pass{findings: map[string]map[string]*namespaceFindings{}}
	for i, k := range judgedKinds() {
		s := &namespaceFindings{}
		p.findings[k.resource] = map[string]*namespaceFindings{"n": s}
		for range i + 2 {
			s.take(newVerdict(k, &head{}, judged))
		}
	}
	want := map[string]map[admission.OtherMode]int32{"disks": {a: 2}, "agents": {b: 2}}
	if diff := cmp.Diff(want, p.totals().modes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// isInert reports whether a text is printable ASCII. It does not ask the code under test.
func isInert(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
