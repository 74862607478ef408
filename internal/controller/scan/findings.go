package scan

import (
	"slices"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// maxListed bounds the results of one namespace and kind. It is beyond what clusters have, and below what would fill
// memory and etcd if someone set out to; what is beyond it is counted, in results that say so.
const maxListed = 50_000

// namespaceFindings are what a pass found in the objects of one namespace and kind.
type namespaceFindings struct {
	number   int
	summary  v1alpha1.ReportSummary
	results  []v1alpha1.ReportResult
	more     counts // findings that results leaves out
	counts   counts // all findings
	violated map[string]int32
	modes    map[admission.OtherMode]int32 // pods
}

// take adds an object to the findings.
func (s *namespaceFindings) take(v *verdict) {
	s.number++
	addSummary(&s.summary, v.summary)
	s.counts.add(v.counts)
	for _, policy := range v.violated {
		if s.violated == nil {
			s.violated = map[string]int32{}
		}
		s.violated[policy]++
	}
	for m := range v.otherModes {
		if s.modes == nil {
			s.modes = map[admission.OtherMode]int32{}
		}
		s.modes[m]++
	}
	if len(s.results)+len(v.results) > maxListed {
		s.more.add(v.counts)
		return
	}
	s.results = append(s.results, v.results...)
}

// all returns the results, the last of them about what is not listed.
func (s *namespaceFindings) all(k kind, namespace string) []v1alpha1.ReportResult {
	out := slices.Clip(s.results)
	for _, key := range s.more.sorted() {
		out = append(out, v1alpha1.ReportResult{
			Rule:    key.code,
			Effect:  key.effect,
			Subject: v1alpha1.ReportSubject{APIVersion: k.apiVersion(), Kind: k.gvk.Kind, Namespace: namespace, Name: "*"},
			Message: notListed(s.more[key], "in objects of this kind"),
		})
	}
	return out
}

func addSummary(sum *v1alpha1.ReportSummary, more v1alpha1.ReportSummary) {
	sum.Judged += more.Judged
	sum.Deny += more.Deny
	sum.Warn += more.Warn
	sum.Audit += more.Audit
	sum.Error += more.Error
}

// findings is how many findings a summary counts.
func findings(s v1alpha1.ReportSummary) int32 { return s.Deny + s.Warn + s.Audit + s.Error }
