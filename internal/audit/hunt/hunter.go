package hunt

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Finding is a record that a rule describes, or the last of those that a correlation counts.
type Finding struct {
	Rule *Rule
	Time time.Time
	Doc  []byte // the record; of the caller
}

// Hunter asks rules of records, one after the other.
type Hunter struct {
	rules   []*Rule
	bundles map[string]*seen // by node and policy
	asked   scanner          // of the fields that the rules look at
}

// New returns a Hunter with rules of Load. It keeps what correlations remember in them: use them once.
func New(rules []*Rule) *Hunter {
	names := []string{fieldIntent, fieldNode, fieldPolicyName, fieldBundle}
	for _, r := range rules {
		names = append(names, r.asks...)
		if r.burst != nil {
			names = append(names, r.burst.by...)
		}
	}
	return &Hunter{rules: rules, bundles: map[string]*seen{}, asked: newScanner(names)}
}

// Lost is how many groups of callers were forgotten for want of memory: what they did may have gone unseen.
func (h *Hunter) Lost() (n int) {
	for _, r := range h.rules {
		if r.burst != nil {
			n += r.burst.lost
		}
	}
	return n
}

// isDerived says whether a field is one of those that a Hunter adds. A record has none: only we say what is derived.
func isDerived(name string) bool { return strings.HasPrefix(name, "derived.") }

// fields are those of a record that the rules look at, and may be more. They are valid until the next record.
func (h *Hunter) fields(doc []byte) (Fields, error) {
	if f, ok := h.asked.scan(string(doc)); ok {
		return f, nil
	}
	f, err := Flatten(doc)
	maps.DeleteFunc(f, func(name string, _ []string) bool { return isDerived(name) })
	return f, err
}

// Ask returns what the rules find in one record of a service.
func (h *Hunter) Ask(service string, doc []byte, at time.Time) ([]Finding, error) {
	f, err := h.fields(doc)
	if err != nil {
		return nil, err
	}
	if service == ServiceAudit {
		h.derive(f, at)
	}
	var found []Finding
	var fitting []string
	for _, r := range h.rules {
		if r.burst != nil || r.Service != service || !r.when(func(name string) bool { return r.search[name](f) }) {
			continue
		}
		if r.Name != "" {
			fitting = append(fitting, r.Name)
		}
		if !r.isPart {
			found = append(found, Finding{r, at, doc})
		}
	}
	for _, r := range h.rules {
		if r.burst != nil && slices.ContainsFunc(r.burst.of, func(name string) bool { return slices.Contains(fitting, name) }) && r.burst.add(f, countOf(doc), at) {
			found = append(found, Finding{r, at, doc})
		}
	}
	return found, nil
}
