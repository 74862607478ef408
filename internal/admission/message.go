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
func denialMessage(in *Input, refused []Detail, rules ruleTable, id, revision string) string {
	var b strings.Builder
	b.Grow(1024)
	b.WriteString("Pipeguard refuses " + whose(in) + ".")
	shown := refused[:min(len(refused), maxListed)]
	for i, d := range shown {
		fmt.Fprintf(&b, "\n%s: %s", code(d.Finding), d.Text)
		if i+1 < len(shown) && shown[i+1].Finding.Code == d.Finding.Code {
			continue // one explanation for all findings of a rule
		}
		explain(&b, rules(d.Finding.Code))
	}
	if more := len(refused) - len(shown); more > 0 {
		fmt.Fprintf(&b, "\nand %d more.", more)
	}
	fmt.Fprintf(&b, "\nDecision %s, policy %s.", id, ShownRevision(revision))
	return b.String()
}

// whose names an object and what permissions of it are looked up by. Not every kind has these.
func whose(in *Input) string {
	s := plain(in.Kind.Kind, maxName)
	if in.Name != "" {
		s += " " + quote(in.Name, maxName)
	}
	if in.Namespace != "" {
		s += " in namespace " + quote(in.Namespace, maxName)
	}
	if in.ServiceAccount != "" {
		s += ", service account " + quote(in.ServiceAccount, maxName)
	}
	return s
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

// causes are the refusals that an answer has room for.
func causes(refused []Detail) []metav1.StatusCause {
	out := make([]metav1.StatusCause, 0, min(len(refused), maxCauses))
	for _, d := range refused[:cap(out)] {
		out = append(out, metav1.StatusCause{
			Type:    metav1.CauseType(code(d.Finding)),
			Message: d.Text,
			Field:   fieldText(d.Finding.Field),
		})
	}
	return out
}

// warnings are short enough for clients to show: code, container, and the rule's title or the policy's own words.
func (d *describer) warnings(findings []policy.Finding, rules ruleTable, suffix string) []string {
	return limited(len(findings), func(i int) string {
		f := findings[i]
		text := f.Message
		if text == "" {
			text = rules(f.Code).Title
		}
		line := code(f) + ": " + plain(oneLine(text), maxWarningLen)
		if where := d.subject(f.Field); where != "" {
			line = code(f) + ": " + where + ": " + plain(oneLine(text), maxWarningLen)
		}
		end := d.deadline(f.Field) + suffix
		return clip(line, maxWarningLen-len(end)) + end
	})
}

// limited are the first of n warnings, and how many are left out.
func limited(n int, warning func(i int) string) (out []string) {
	for i := range n {
		if i == maxWarnings {
			return append(out, fmt.Sprintf("Pipeguard: %d more warnings", n-i))
		}
		out = append(out, warning(i))
	}
	return out
}

// subject names what a finding is about in a word or two.
func (d *describer) subject(field string) string {
	const short = 40
	if m := d.mount(field); m != nil {
		return "container " + quote(m.Container, short)
	}
	if v := d.volume(field); v != nil {
		return "volume " + quote(v.Volume, short)
	}
	if v := d.persistent(field); v != nil {
		return "the volume"
	}
	if c := d.container(field); c != nil {
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

// ShownRevision is the beginning of a revision that refusals show.
func ShownRevision(revision string) string { return revision[:min(len(revision), revisionShown)] }
