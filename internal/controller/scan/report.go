package scan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// Bounds of one part of a report. An object of the API has at most 1.5 MiB where etcd has its defaults; managedFields
// and what others add must fit as well.
const (
	maxResults = 1000
	maxBytes   = 768 << 10
)

// parts returns the report of a namespace, or of the objects without one if namespace is "": nothing if there is no
// finding.
func (p *pass) parts(namespace string) ([]v1alpha1.Report, error) {
	var summary v1alpha1.ReportSummary
	var results []v1alpha1.ReportResult
	kinds := judgedKinds()
	listed := make([]counts, len(kinds))
	for _, c := range p.selection.of(namespace) {
		listed[c.kind].addOne(c.series)
		results = append(results, c.ReportResult)
	}
	for i, k := range kinds {
		if found := p.findings[k.resource][namespace]; found != nil {
			addSummary(&summary, found.summary)
			results = append(results, found.unlisted(k, namespace, listed[i])...)
		}
	}
	slices.SortStableFunc(results, compareResults)
	return divide(p.revision, summary, results)
}

// divide makes as many parts as it takes. Each has one result at least, and those have bounded texts.
func divide(revision string, summary v1alpha1.ReportSummary, results []v1alpha1.ReportResult) ([]v1alpha1.Report, error) {
	var parts []v1alpha1.Report
	for start := 0; start < len(results); {
		size, end := 0, start
		for ; end < len(results) && end-start < maxResults; end++ {
			more, err := sizeOf(&results[end])
			if err != nil {
				return nil, err
			}
			if size += more; size > maxBytes && end > start {
				break
			}
		}
		parts = append(parts, v1alpha1.Report{
			Source: managedBy, Revision: revision, Summary: summary, Results: results[start:end:end],
		})
		start = end
	}
	for i := range parts {
		parts[i].Part = fmt.Sprintf("%d/%d", i+1, len(parts))
	}
	return parts, nil
}

// partName is the name of the object that has part i, counted from 0.
func partName(i int) string {
	if i == 0 {
		return managedBy
	}
	return fmt.Sprintf("%s-%d", managedBy, i+1)
}

// isPart reports whether name is that of some part.
func isPart(name string) bool { return isStale(name, 0) }

// isStale reports whether name is that of a part beyond those that there are.
func isStale(name string, parts int) bool {
	if name == partName(0) {
		return parts == 0
	}
	digits, ok := strings.CutPrefix(name, managedBy+"-")
	n, err := strconv.Atoi(digits)
	return ok && err == nil && name == partName(n-1) && n > 1 && n > parts
}
