package hunt

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

func (f *ruleFile) rule(name string) (*Rule, error) {
	r := &Rule{Title: f.Title, ID: f.ID, Name: f.Name, Level: f.Level, Description: f.Description, Service: f.Logsource.Service, File: name}
	switch {
	case f.Title == "" || f.ID == "":
		return nil, errors.New("title or id is missing")
	case !slices.Contains(Levels(), f.Level):
		return nil, fmt.Errorf("level %q is none of %q", f.Level, Levels())
	case (f.Correlation == nil) == (f.Detection == nil):
		return nil, errors.New("a rule has either a detection or a correlation")
	case f.Correlation != nil:
		b, err := f.Correlation.burst()
		r.burst = b
		return r, err
	case f.Logsource.Product != "pipeguard" || f.Logsource.Service != ServiceAudit && f.Logsource.Service != ServiceProxy:
		return nil, fmt.Errorf("logsource must be product pipeguard, service %s or %s", ServiceAudit, ServiceProxy)
	}
	var text string
	r.search = map[string]matcher{}
	for key, node := range f.Detection {
		if key == "condition" {
			if err := node.Decode(&text); err != nil {
				return nil, fmt.Errorf("condition: %w", err)
			}
			continue
		}
		m, err := r.newMatcher(&node)
		if err != nil {
			return nil, fmt.Errorf("detection %s: %w", key, err)
		}
		r.search[key] = m
	}
	var err error
	if r.when, err = parseCondition(text, r.search); err != nil {
		return nil, fmt.Errorf("condition %q: %w", text, err)
	}
	return r, nil
}

func (c *correlationFile) burst() (*burst, error) {
	span, err := time.ParseDuration(c.Timespan)
	if err != nil || span <= 0 || span > maxTimespan {
		return nil, fmt.Errorf("timespan %q must be a time up to %s", c.Timespan, maxTimespan)
	}
	count, ok := c.Condition["gte"]
	switch {
	case c.Type != "event_count":
		return nil, fmt.Errorf("correlation %q: only event_count is known", c.Type)
	case len(c.Rules) == 0:
		return nil, errors.New("a correlation needs rules")
	case !ok || len(c.Condition) != 1 || count < 2 || count > maxCount:
		return nil, fmt.Errorf("the condition of a correlation is gte with 2 to %d", maxCount)
	}
	return &burst{of: c.Rules, by: c.GroupBy, span: span, count: count, groups: map[string][]time.Time{}}, nil
}

// tie finds the rules that correlations are about, and faults between rules.
func tie(rules []*Rule) error {
	var faults []error
	byName, ids := map[string]*Rule{}, map[string]string{}
	for _, r := range rules {
		if other, twice := ids[r.ID]; twice {
			faults = append(faults, fmt.Errorf("%s: the id %s is that of %s", r.File, r.ID, other))
		}
		ids[r.ID] = r.File
		if r.Name != "" {
			byName[r.Name] = r
		}
	}
	for _, r := range rules {
		if r.burst == nil {
			continue
		}
		for _, name := range r.burst.of {
			part := byName[name]
			if part == nil || part.burst != nil {
				faults = append(faults, fmt.Errorf("%s: there is no rule %q with a detection", r.File, name))
				continue
			}
			part.isPart = true
		}
	}
	return errors.Join(faults...)
}
