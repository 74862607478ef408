package admission

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/policy"
)

func TestADenialTellsAPersonWhatWhereWhyAndWhatToDo(t *testing.T) {
	p := DefaultParameters()
	engine := newEngine(t, p, nil)
	r := newReviewer(t, p, func(o *ReviewerOptions) { o.Engine = engine })
	_, answer := post(t, r, reviewBody(t, createRequest(t, testPod(`C:\data`, `//./PIPE/CSI-Proxy-disk-v1`))))
	snapshot, _ := engine.Active()
	rule, _ := snapshot.Rule("PG001")
	if rule.Title == "" || rule.Remedy == "" || !strings.HasPrefix(rule.Docs, "https://") {
		t.Fatalf("the rule's metadata is incomplete: %+v", rule)
	}
	about := `container "app" mounts volume "v1": "//./PIPE/CSI-Proxy-disk-v1", canonical form "\\.\pipe\csi-proxy-disk-v1"` +
		` (spec.containers[0].volumeMounts[1], spec.volumes[1].hostPath.path)`
	want := &metav1.Status{
		Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonForbidden,
		Code:   403,
		Message: `Pipeguard refuses Pod "demo" in namespace "team-a", service account "builder".` +
			"\nPG001: " + about +
			"\n  Why: " + rule.Title +
			"\n  Fix: " + rule.Remedy +
			"\n  Docs: " + rule.Docs +
			"\nDecision decision0, policy " + snapshot.Revision()[:len("sha256:")+12] + ".",
		Details: &metav1.StatusDetails{Name: "demo", Kind: "Pod", Causes: []metav1.StatusCause{
			{Type: "PG001", Message: about, Field: "spec.containers[0].volumeMounts[1]"},
		}},
	}
	if diff := cmp.Diff(want, answer.Result); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	wantAnnotations := map[string]string{"decision-id": "decision0", "revision": snapshot.Revision(), "effect": "deny", "codes": "PG001"}
	if diff := cmp.Diff(wantAnnotations, answer.AuditAnnotations); diff != "" {
		t.Errorf("audit annotations (-want +got):\n%s", diff)
	}
}

func TestEachRuleIsExplainedOnceForAllItsFindings(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	res := r.Review(t.Context(), createRequest(t, testPod(csiPipe, `\\.\pipe\csi-proxy-disk-v1`, `\\.\pipe\`)))
	for text, want := range map[string]int{"\nPG001: ": 2, "\nPG003: ": 1, "\n  Why: ": 2, "\n  Fix: ": 2, "\n  Docs: ": 2} {
		if got := strings.Count(res.Message, text); got != want {
			t.Errorf("%q occurs %d times, want %d, in\n%s", text, got, want, res.Message)
		}
	}
}

func TestTextOfAnObjectCannotActUpInAMessage(t *testing.T) {
	evil := "x\nError: \x1b[31mall good\x1b[0m \u202egnp.exe \" K\u212a\x00"
	p := testPod(csiPipe + evil)
	p.Spec.Containers[0].Name, p.Spec.Volumes[0].Name, p.Name, p.Spec.ServiceAccountName = evil, evil, evil, evil
	p.Spec.Containers[0].VolumeMounts[0].Name = evil
	p.Spec.Containers[0].VolumeMounts[0].SubPath = evil
	p.Annotations = map[string]string{"microsoft.com/hostprocess" + evil: "true"}
	parameters := DefaultParameters()
	parameters.HostProcess = ActionDeny
	for _, hostProcess := range []Action{ActionDeny, ActionWarn} {
		parameters.HostProcess = hostProcess
		r := newReviewer(t, parameters)
		res := r.Review(t.Context(), createRequest(t, p))
		if res.Allowed {
			t.Fatal("admitted")
		}
		texts := append([]string{res.name, res.kind}, res.Warnings...)
		texts = append(texts, strings.Split(res.Message, "\n")...)
		for _, c := range res.Causes {
			texts = append(texts, c.Field, c.Message)
		}
		for _, s := range texts {
			if i := strings.IndexFunc(s, func(c rune) bool { return c > unicode.MaxASCII || !unicode.IsPrint(c) }); i >= 0 {
				t.Errorf("%q has an unprintable character at %d", s, i)
			}
			if strings.HasPrefix(s, "Error:") {
				t.Errorf("the object wrote a line of its own: %q", s)
			}
		}
		if strings.Contains(res.Message, `gnp.exe "`) {
			t.Errorf("a quote of the object ends the quotation:\n%s", res.Message)
		}
	}
}

func TestAMessageStaysShortWhateverTheObjectHolds(t *testing.T) {
	long := strings.Repeat("\u202e", 5_000)
	p := testPod()
	p.Spec.Containers = nil
	for range 15 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: long, VolumeMounts: []corev1.VolumeMount{{Name: long, SubPath: long}}})
	}
	p.Spec.Volumes = []corev1.Volume{pipeVolume(long, csiPipe+long)}
	p.Name, p.Spec.ServiceAccountName = long, long
	res := newReviewer(t, DefaultParameters()).Review(t.Context(), createRequest(t, p))
	if res.Allowed || len(res.Message) > 16_000 {
		t.Errorf("allowed %t, message of %d bytes", res.Allowed, len(res.Message))
	}
	for _, c := range res.Causes {
		if len(c.Message) > 2000 {
			t.Errorf("a cause of %d bytes", len(c.Message))
		}
	}
	if !strings.Contains(res.Message, "bytes more)") {
		t.Errorf("the message does not say that it cut something:\n%s", res.Message)
	}
}

func TestWarningsAreAtMost120Characters(t *testing.T) {
	p := with(testPod(csiPipe), privileged)
	p.Spec.Containers[0].Name = strings.Repeat("long-", 100)
	for range 8 {
		p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
	}
	r := newReviewer(t, DefaultParameters())
	res := r.Review(t.Context(), createRequest(t, p))
	if !res.Allowed || len(res.Warnings) != maxWarnings+1 {
		t.Fatalf("allowed %t, warnings %q", res.Allowed, res.Warnings)
	}
	for _, w := range res.Warnings {
		if len(w) > 120 {
			t.Errorf("warning of %d characters: %s", len(w), w)
		}
	}
	if !strings.HasPrefix(res.Warnings[0], "PG004: container \"long-") {
		t.Errorf("warning %q does not name its rule and container", res.Warnings[0])
	}
	if got, want := res.Warnings[maxWarnings], "Pipeguard: 4 more warnings"; got != want {
		t.Errorf("last warning %q, want %q", got, want)
	}
}

func TestAPolicysOwnMessageReplacesTheDescription(t *testing.T) {
	f := policy.Finding{Code: "X1", Effect: policy.EffectDeny, Field: "spec", Message: "no \x1b[1mway"}
	got := denialMessage(&Input{}, (&describer{in: &Input{}}).details([]policy.Finding{f}), func(string) policy.Rule { return policy.Rule{} }, "id", "sha256:0")
	if want := "\nX1: no <U+001B>[1mway (spec)\nDecision id, policy sha256:0."; !strings.HasSuffix(got, want) {
		t.Errorf("message %q does not end with %q", got, want)
	}
}

func TestQuoteShowsEveryCharacter(t *testing.T) {
	for in, want := range map[string]string{
		"":                   `""`,
		`\\.\pipe\x`:         `"\\.\pipe\x"`,
		`a"b`:                `"a<U+0022>b"`,
		"a\nb\x7f":           `"a<U+000A>b<U+007F>"`,
		"\u202e\u212a\u017f": `"<U+202E><U+212A><U+017F>"`,
		"\xff\xfe":           `"<0xFF><0xFE>"`,
		"\ufffd":             `"<U+FFFD>"`,
	} {
		if got := quote(in, 100); got != want {
			t.Errorf("quote(%q, 100) = %s, want %s", in, got, want)
		}
	}
	if got, want := quote("0123456789", 8), `"01234567"... (2 bytes more)`; got != want {
		t.Errorf("a text that is too long becomes %s, want %s", got, want)
	}
}
