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

func TestAnObjectListsItsFirstFindings(t *testing.T) {
	var findings []Finding
	for n := range 300 {
		findings = append(findings, finding("PG004", "warn", fmt.Sprintf("w%03d", n)))
	}
	for n := range 15 {
		findings = append(findings, finding("PG001", "deny", fmt.Sprintf("d%03d", n)))
	}
	v := podVerdict(findings...)
	if d := cmp.Diff(v1alpha1.ReportSummary{Judged: 1, Deny: 15, Warn: 300}, v.summary); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
	if len(v.results) != maxPerObject {
		t.Fatalf("%d results", len(v.results))
	}
	for i, r := range v.results {
		want := fmt.Sprintf("d%03d", i)
		if i >= 15 {
			want = fmt.Sprintf("w%03d", i-15)
		}
		if r.Field != want {
			t.Errorf("result %d is about %s, want %s: what is refused comes first", i, r.Field, want)
		}
	}
}

// Every finding is in the results or in the number of those that are not listed, whatever the findings are.
func TestNoFindingIsDropped(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := testPass()
		want := int32(0)
		for i := range 1 + r.IntN(4) {
			var findings []Finding
			for range r.IntN(100) {
				f := finding([]string{"PG001", "PG004", "", "custom\x1b"}[r.IntN(4)], []string{"deny", "warn", "audit", "?"}[r.IntN(4)], fmt.Sprint(r.IntN(5)))
				f.Known = r.IntN(2) == 0
				findings = append(findings, f)
			}
			want += int32(len(findings))
			p.take(t, r.IntN(3), fmt.Sprint("p", i), findings...)
		}
		parts, err := p.parts("n")
		if err != nil {
			t.Fatal(err)
		}
		total, summary := int32(0), int32(0)
		for _, part := range parts {
			summary = findings(part.Summary)
			for _, result := range part.Results {
				total += standsFor(result)
			}
		}
		counted := int32(0)
		for _, n := range p.totals().counts {
			counted += n
		}
		if total != want || counted != want || summary != want {
			t.Fatalf("%d findings: %d in results, %d counted, %d in the summary", want, total, counted, summary)
		}
	}
}

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
	p := testPass()
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
