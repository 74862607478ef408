package admission

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// Bounds of an answer: a pod may have a thousand containers, its author reads the first few lines.
const (
	maxListed     = 10
	maxCauses     = 20
	maxWarnings   = 5
	maxWarningLen = 120 // what the Kubernetes API documentation asks of a warning
	revisionShown = len("sha256:") + 12
)

// denialMessage tells a person what was refused, why, and what to do about it.
func denialMessage(in *Input, denials []policy.Finding, texts []string, rules ruleTable, id, revision string) string {
	var b strings.Builder
	b.Grow(1024)
	fmt.Fprintf(&b, "Pipeguard refuses %s %s in namespace %s, service account %s.",
		in.Kind.Kind, quote(in.Name, maxName), quote(in.Namespace, maxName), quote(in.ServiceAccount, maxName))
	shown := denials[:min(len(denials), maxListed)]
	for i, f := range shown {
		fmt.Fprintf(&b, "\n%s: %s", code(f), texts[i])
		if i+1 < len(shown) && shown[i+1].Code == f.Code {
			continue // one explanation for all findings of a rule
		}
		explain(&b, rules(f.Code))
	}
	if more := len(denials) - len(shown); more > 0 {
		fmt.Fprintf(&b, "\nand %d more.", more)
	}
	fmt.Fprintf(&b, "\nDecision %s, policy %s.", id, revision[:min(len(revision), revisionShown)])
	return b.String()
}

func explain(b *strings.Builder, r policy.Rule) {
	for _, line := range []struct{ word, text string }{{"Why", r.Title}, {"Fix", r.Remedy}, {"Docs", r.Docs}} {
		if line.text != "" {
			b.WriteString("\n  " + line.word + ": " + plain(oneLine(line.text), maxText))
		}
	}
}

// failureMessage tells a person that there was no decision.
func failureMessage(reason, why, id string) string {
	return fmt.Sprintf("%s: Pipeguard refuses what it cannot judge (%s): %s.\nDecision %s.",
		CodeFailure, reason, plain(oneLine(why), maxText), id)
}

// describeFirst describes the findings that an answer has room for.
func describeFirst(in *Input, denials []policy.Finding) []string {
	texts := make([]string, 0, min(len(denials), maxCauses))
	for _, f := range denials[:cap(texts)] {
		texts = append(texts, describe(in, f))
	}
	return texts
}

func causes(denials []policy.Finding, texts []string) []metav1.StatusCause {
	out := make([]metav1.StatusCause, 0, len(texts))
	for i, f := range denials[:len(texts)] {
		out = append(out, metav1.StatusCause{
			Type:    metav1.CauseType(code(f)),
			Message: texts[i],
			Field:   fieldText(f.Field),
		})
	}
	return out
}

// warnings are short enough for clients to show: code, container, and the rule's title or the policy's own words.
func warnings(in *Input, findings []policy.Finding, rules ruleTable, suffix string) []string {
	var out []string
	for i, f := range findings {
		if i == maxWarnings {
			out = append(out, fmt.Sprintf("Pipeguard: %d more warnings", len(findings)-i))
			break
		}
		text := f.Message
		if text == "" {
			text = rules(f.Code).Title
		}
		line := code(f) + ": " + plain(oneLine(text), maxWarningLen)
		if where := subject(in, f.Field); where != "" {
			line = code(f) + ": " + where + ": " + plain(oneLine(text), maxWarningLen)
		}
		out = append(out, clip(line, maxWarningLen-len(suffix))+suffix)
	}
	return out
}

// subject names what a finding is about in a word or two.
func subject(in *Input, field string) string {
	const short = 40
	if m := find(in.Mounts, func(m *Mount) (string, bool) { return m.Field, m.Guarded }, field); m != nil {
		return "container " + quote(m.Container, short)
	}
	if v := find(in.Unmounted, func(v *Volume) (string, bool) { return v.Field, v.Guarded }, field); v != nil {
		return "volume " + quote(v.Volume, short)
	}
	if c := find(in.Containers, func(c *Container) (string, bool) { return c.Field, true }, field); c != nil {
		return "container " + quote(c.Name, short)
	}
	return clip(fieldText(field), short)
}

// code is the code of a finding, made safe: a policy may compute it.
func code(f policy.Finding) string {
	if f.Code == "" {
		return "(no code)"
	}
	return plain(f.Code, maxName)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// ruleTable gives what the policies' METADATA says of a code; the zero Rule where it says nothing.
type ruleTable func(code string) policy.Rule
