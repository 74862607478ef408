package scan

import (
	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// sums are what all slots come to.
type sums struct {
	summary  v1alpha1.ReportSummary
	counts   counts
	objects  int
	kinds    map[string]int                           // objects by kind
	violated map[string]int32                         // objects that nobody permits what they have, by policy
	modes    map[string]map[admission.OtherMode]int32 // pods, by policy
}

func (p *pass) sums() *sums {
	out := &sums{counts: counts{}, kinds: map[string]int{}, violated: map[string]int32{}, modes: map[string]map[admission.OtherMode]int32{}}
	for _, k := range judgedKinds() {
		out.kinds[k.gvk.Kind] = 0
		for _, slot := range p.slots[k.resource] {
			addSummary(&out.summary, slot.summary)
			out.counts.add(slot.counts)
			out.objects += slot.number
			out.kinds[k.gvk.Kind] += slot.number
			for policy, n := range slot.violated {
				out.violated[policy] += n
			}
			for m, n := range slot.modes {
				if out.modes[m.Policy] == nil {
					out.modes[m.Policy] = map[admission.OtherMode]int32{}
				}
				out.modes[m.Policy][m] += n
			}
		}
	}
	return out
}
