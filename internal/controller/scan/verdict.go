package scan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// Bounds, in bytes, of texts in a report: a message is read by a person, and a thousand of them must fit into one object.
const (
	maxMessage = 1024
	maxField   = 512
	maxShort   = 320 // a kind and a name, of 253 characters at most, and what is between them
)

// verdict is what is kept of one judged object.
type verdict struct {
	summary  v1alpha1.ReportSummary
	results  []candidate
	counts   counts
	violated []string // policies that govern what has no permission, each once
	// otherModes are those whose subject a pod would be in its other mode, each once. Templates make pods, which count.
	otherModes map[admission.OtherMode]bool
}

// newVerdict puts a judgement into the terms of a report.
func newVerdict(k kind, h *head, j *Judged) *verdict {
	v := &verdict{}
	subject := v1alpha1.ReportSubject{
		APIVersion: k.apiVersion(),
		Kind:       k.gvk.Kind,
		Namespace:  admission.Plain(h.namespace, maxShort),
		Name:       admission.Plain(h.name, maxShort),
		UID:        types.UID(h.uid),
		Controller: admission.Plain(h.controller, maxShort),
	}
	isStatic := h.isMirror && k.gvk.Kind == "Pod"
	result := func(key series, rule string) candidate {
		return candidate{series: key, ReportResult: v1alpha1.ReportResult{Rule: rule, Effect: key.effect, Subject: subject, StaticPod: isStatic}}
	}
	if j.Failure != "" {
		key := series{effectError, admission.CodeFailure}
		r := result(key, key.code)
		r.Message = admission.Plain(j.Failure, maxMessage)
		v.summary.Error = 1
		v.counts.addOne(key)
		v.results = []candidate{r}
		return v
	}
	v.summary.Judged = 1
	if len(j.Findings) == 0 {
		return v
	}
	for i, f := range slices.SortedStableFunc(slices.Values(j.Findings), compareFindings) {
		key := seriesOf(f)
		v.counts.addOne(key)
		v.count(key.effect)
		if isViolation(key.effect, f) {
			v.violated = append(v.violated, f.Policies...)
			if k.gvk.Kind == "Pod" {
				v.addModes(f.OtherModes)
			}
		}
		if i >= maxPerObject {
			continue
		}
		r := result(key, ruleOf(f))
		r.nth = i
		r.Severity = admission.Plain(f.Severity, maxShort)
		r.Field = admission.Plain(f.Finding.Field, maxField)
		r.Message = admission.Plain(f.Text, maxMessage)
		r.Policies = slices.Clone(f.Policies)
		v.results = append(v.results, r)
	}
	slices.Sort(v.violated)
	v.violated = slices.Compact(v.violated)
	return v
}

func (v *verdict) addModes(modes []admission.OtherMode) {
	for _, m := range modes {
		if v.otherModes == nil {
			v.otherModes = map[admission.OtherMode]bool{}
		}
		v.otherModes[m] = true
	}
}

func (v *verdict) count(effect string) {
	switch effect {
	case effectWarn:
		v.summary.Warn++
	case effectAudit:
		v.summary.Audit++
	default:
		v.summary.Deny++
	}
}

// effectOf is the effect of a finding. An unknown one refuses, as in admission.
func effectOf(f Finding) string {
	switch effect := string(f.Finding.Effect); effect {
	case effectWarn, effectAudit:
		return effect
	}
	return effectDeny
}

// ruleOf is the code of a finding, made safe: a policy may compute it.
func ruleOf(f Finding) string {
	if f.Finding.Code == "" {
		return "(no code)"
	}
	return admission.Plain(f.Finding.Code, maxShort)
}

// rank orders effects from the one to look at first.
func rank(effect string) int {
	return slices.Index([]string{effectDeny, effectError, effectWarn, effectAudit}, effect)
}

func compareFindings(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(rank(effectOf(a)), rank(effectOf(b))),
		cmp.Compare(a.Finding.Code, b.Finding.Code),
		cmp.Compare(a.Finding.Field, b.Finding.Field),
		cmp.Compare(a.Text, b.Text),
	)
}

// compareResults orders the results of a report: what would be refused first, and the same order each time.
func compareResults(a, b v1alpha1.ReportResult) int {
	return cmp.Or(
		cmp.Compare(rank(a.Effect), rank(b.Effect)),
		cmp.Compare(a.Subject.Kind, b.Subject.Kind),
		cmp.Compare(a.Subject.APIVersion, b.Subject.APIVersion),
		cmp.Compare(a.Subject.Name, b.Subject.Name),
		cmp.Compare(a.Subject.UID, b.Subject.UID),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Message, b.Message),
	)
}

// isViolation reports whether a finding is about something without permission. That does not depend on the action of the policy: also where it only warns or
// records, its rules of high severity find the same. Lesser ones are about what is permitted, but not for long.
func isViolation(effect string, f Finding) bool {
	return effect == effectDeny || f.Severity == "critical" || f.Severity == "high"
}
