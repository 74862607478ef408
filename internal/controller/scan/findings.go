package scan

import (
	"fmt"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// namespaceFindings are what a pass found in the objects of one namespace and kind.
type namespaceFindings struct {
	number   int
	summary  v1alpha1.ReportSummary
	counts   counts
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
}

// unlisted returns results about the findings beyond those that are listed.
func (s *namespaceFindings) unlisted(k kind, namespace string, listed counts) (out []v1alpha1.ReportResult) {
	for _, key := range s.counts.sorted() {
		n := s.counts[key] - listed[key]
		if n <= 0 {
			continue
		}
		out = append(out, v1alpha1.ReportResult{
			Rule:    key.code,
			Effect:  key.effect,
			Subject: v1alpha1.ReportSubject{APIVersion: k.apiVersion(), Kind: k.gvk.Kind, Namespace: namespace, Name: "*"},
			Message: notListed(n, key),
		})
	}
	return out
}

func notListed(n int32, key series) string {
	rule := "this rule"
	if key.code == otherCode {
		rule = "rules that the policies do not describe"
	}
	return fmt.Sprintf("%d more findings of %s in objects of this kind, not listed one by one", n, rule)
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
