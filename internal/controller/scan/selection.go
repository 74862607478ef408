package scan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// Bounds of what reports list one by one. Findings beyond them are counted, in results that say so: the objects of a
// tenant must not fill memory or etcd. Bytes are those of results as JSON.
const (
	maxPerObject     = 20       // results of one object; its author fixes the first of them first
	maxListed        = 2_000    // results of one namespace, or of all objects without one
	maxListedBytes   = 1 << 20  // of one namespace, or of all objects without one
	maxSelectedBytes = 32 << 20 // of all namespaces together
)

// candidate is a finding that a report may list.
type candidate struct {
	v1alpha1.ReportResult
	series series
	nth    int // its place among the findings of its object
	kind   int // the place of its object's kind among judgedKinds
	page   int // selection.pages when it was added
	size   int // bytes
}

// compareCandidates orders candidates from the one to list first: by effect, and within it first one of each object, so that
// no object takes the place of all others. Pods come before what makes them.
func compareCandidates(a, b candidate) int {
	if c := cmp.Or(cmp.Compare(rank(a.Effect), rank(b.Effect)), cmp.Compare(a.nth, b.nth), cmp.Compare(a.kind, b.kind)); c != 0 {
		return c
	}
	return compareResults(a.ReportResult, b.ReportResult)
}

// selection holds the candidates of a pass that are within the bounds. It does not depend on the order in which they come, unless those
// of all namespaces together are too many.
type selection struct {
	namespaces map[string]*shortlist
	bytes      int // of all
	share      int // the most bytes of one namespace: less than maxListedBytes where too many fill it
	pages      int // that have arrived whole
}

func newSelection() *selection {
	return &selection{namespaces: map[string]*shortlist{}, share: maxListedBytes}
}

// shortlist holds the candidates of one namespace. They are beyond the bounds by no more than as much again, so that sorting them
// costs little for each.
type shortlist struct {
	found []candidate
	bytes int
}

// add takes the candidates of one object, whose kind has this place among judgedKinds.
func (s *selection) add(namespace string, kind int, found []candidate) error {
	if len(found) == 0 {
		return nil
	}
	l := s.namespaces[namespace]
	if l == nil {
		l = &shortlist{}
		s.namespaces[namespace] = l
	}
	for _, c := range found {
		size, err := sizeOf(&c.ReportResult)
		if err != nil {
			return err
		}
		c.kind, c.page, c.size = kind, s.pages, size
		l.found = append(l.found, c)
		l.bytes += size
		s.bytes += size
	}
	if len(l.found) > 2*maxListed || l.bytes > 2*s.share {
		s.bytes -= l.trim(s.share)
	}
	if s.bytes > maxSelectedBytes {
		s.trim()
	}
	return nil
}

// commit keeps what was added: the page has arrived whole.
func (s *selection) commit() { s.pages++ }

// dropSince removes what was added when so many pages had arrived, or more.
func (s *selection) dropSince(pages int) {
	for _, l := range s.namespaces {
		l.found = slices.DeleteFunc(l.found, func(c candidate) bool {
			if c.page < pages {
				return false
			}
			l.bytes -= c.size
			s.bytes -= c.size
			return true
		})
	}
}

// trim halves the share of each namespace until a quarter of maxSelectedBytes is free. Those that have less than their
// share lose nothing.
func (s *selection) trim() {
	for ; ; s.share /= 2 {
		for _, l := range s.namespaces {
			s.bytes -= l.trim(s.share)
		}
		if s.bytes <= maxSelectedBytes/4*3 {
			return
		}
	}
}

// of returns the candidates that the report of a namespace lists.
func (s *selection) of(namespace string) []candidate {
	l := s.namespaces[namespace]
	if l == nil {
		return nil
	}
	s.bytes -= l.trim(s.share)
	return l.found
}

// trim leaves the first candidates that are within the bounds, of which share is that of bytes. It returns how many bytes it has freed.
func (l *shortlist) trim(share int) (freed int) {
	if len(l.found) <= maxListed && l.bytes <= share {
		return 0
	}
	slices.SortFunc(l.found, compareCandidates)
	kept, bytes := 0, 0
	for ; kept < min(len(l.found), maxListed) && bytes+l.found[kept].size <= share; kept++ {
		bytes += l.found[kept].size
	}
	freed = l.bytes - bytes
	l.found, l.bytes = slices.Clone(l.found[:kept]), bytes // others' memory goes
	return freed
}

// sizeOf is how many bytes a result has in a report.
func sizeOf(r *v1alpha1.ReportResult) (int, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("encode a result: %w", err)
	}
	return len(text) + 1, nil
}
