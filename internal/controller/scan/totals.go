package scan

import (
	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// totals are the counts over all findings.
type totals struct {
	summary  v1alpha1.ReportSummary
	counts   counts
	objects  int
	kinds    map[string]int                           // objects by kind
	violated map[string]int32                         // objects without permission, by policy
	modes    map[string]map[admission.OtherMode]int32 // pods, by policy
}

func (p *pass) totals() *totals {
	out := &totals{counts: counts{}, kinds: map[string]int{}, violated: map[string]int32{}, modes: map[string]map[admission.OtherMode]int32{}}
	for _, k := range judgedKinds() {
		out.kinds[k.gvk.Kind] = 0
		for _, found := range p.findings[k.resource] {
			addSummary(&out.summary, found.summary)
			out.counts.add(found.counts)
			out.objects += found.number
			out.kinds[k.gvk.Kind] += found.number
			for policy, n := range found.violated {
				out.violated[policy] += n
			}
			for m, n := range found.modes {
				if out.modes[m.Policy] == nil {
					out.modes[m.Policy] = map[admission.OtherMode]int32{}
				}
				out.modes[m.Policy][m] += n
			}
		}
	}
	return out
}
