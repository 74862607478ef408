package clustercmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// Settings that decide whether a finding refuses. The first five are parameters, the next two fields of a PipePolicy.
const (
	settingAction      = "action"
	settingRequirement = "requirement"
	settingHostProcess = "hostProcess"
	settingEqualPower  = "equalPower"
	settingHostPaths   = "hostPaths"

	settingPolicyAction      = "admission.action"
	settingPolicyRequirement = "admission.requirement"

	settingPreset = "preset" // a value of the chart, which sets parameters
)

// stepOf is the setting that would refuse what a rule only records or warns of. Rules that always refuse, and advice, have none; that of a
// PipePolicy counts for what PipePolicies govern.
var stepOf = map[string]struct{ parameter, ofPolicy string }{
	"PG001": {parameter: settingAction},
	"PG002": {settingAction, settingPolicyAction},
	"PG003": {parameter: settingAction},
	"PG004": {settingRequirement, settingPolicyRequirement},
	"PG005": {parameter: settingHostProcess},
	"PG006": {parameter: settingHostProcess},
	"PG007": {settingAction, settingPolicyAction},
	"PG008": {parameter: settingEqualPower},
	"PG010": {ofPolicy: settingPolicyAction},
	"PG011": {parameter: settingHostPaths},
}

// existing are the findings about objects that exist, as the background scan reports them.
type existing struct {
	Deny  int `json:"deny"`
	Warn  int `json:"warn"`
	Audit int `json:"audit"`
	// Error counts objects that could not be judged.
	Error int `json:"error"`
	// Namespaces with findings, counting PersistentVolumes as one.
	Namespaces int        `json:"namespaces"`
	Next       []nextStep `json:"next"`
}

// nextStep is a setting that refuses less than it could, and what it would refuse of what exists.
type nextStep struct {
	Setting string `json:"setting"`
	// Name is that of the PipePolicy whose field the setting is; empty for a parameter.
	Name string `json:"name"`
	// From is the setting now; empty if it is not known.
	From     string `json:"from"`
	To       string `json:"to"`
	Findings int    `json:"findings"`
	Objects  int    `json:"objects"`
	// AtLeast is true if the reports do not list every finding.
	AtLeast bool `json:"atLeast"`
}

// String names the step for people.
func (n nextStep) String() string {
	name := n.Setting
	if n.Name != "" {
		name = "PipePolicy " + n.Name + ": " + n.Setting
	}
	if n.From == "" {
		return name + ": " + n.To
	}
	return name + ": " + n.From + " → " + n.To
}

// maxCounted bounds the objects that are told apart. With more, the count is a least.
const maxCounted = 500_000

// steps collects what next steps would refuse.
type steps struct {
	found   map[[2]string]*nextStep // by setting and policy
	objects map[[2]string]map[v1alpha1.ReportSubject]bool
	counted int
}

func (n *steps) add(r *v1alpha1.ReportResult) {
	step, ok := stepOf[r.Rule]
	if !ok || r.Effect != "audit" && r.Effect != "warn" {
		return
	}
	if len(r.Policies) > 0 && step.ofPolicy != "" {
		for _, policy := range r.Policies {
			n.count(step.ofPolicy, policy, r)
		}
	} else if step.parameter != "" {
		n.count(step.parameter, "", r)
	}
}

func (n *steps) count(setting, policy string, r *v1alpha1.ReportResult) {
	key := [2]string{setting, policy}
	s := n.found[key]
	if s == nil {
		s = &nextStep{Setting: setting, Name: policy, To: string(admission.ActionDeny)}
		if setting == settingRequirement || setting == settingPolicyRequirement {
			s.To = string(admission.AllowedNamespace)
		}
		n.found[key], n.objects[key] = s, map[v1alpha1.ReportSubject]bool{}
	}
	s.Findings++
	if r.Field == "" { // it stands for findings that are not listed
		s.AtLeast = true
	}
	subject := r.Subject
	switch {
	case subject.Name == "*":
	case n.counted >= maxCounted && !n.objects[key][subject]:
		s.AtLeast = true
	case !n.objects[key][subject]:
		n.counted++
		n.objects[key][subject] = true
		s.Objects++
	}
}

// sorted are the steps, those with the most objects last: the smallest step is the next one.
func (n *steps) sorted() []nextStep {
	out := []nextStep{}
	for _, s := range n.found {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b nextStep) int {
		return cmp.Or(cmp.Compare(a.Objects, b.Objects), cmp.Compare(a.Setting, b.Setting), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// existing reads the reports of the background scan.
func (s *survey) existing(ctx context.Context) check {
	c := newCheck("existing")
	out, next := &existing{}, &steps{map[[2]string]*nextStep{}, map[[2]string]map[v1alpha1.ReportSubject]bool{}, 0}
	reports, others := 0, map[string]bool{}
	for _, resource := range []string{"pipereports", "clusterpipereports"} {
		l := policiesOf(resource)
		l.selector, l.page = "app.kubernetes.io/managed-by=pipeguard", 20
		err := s.list(ctx, l, func(raw []byte) error {
			var r v1alpha1.PipeReport // a ClusterPipeReport has the same shape
			if err := json.Unmarshal(raw, &r); err != nil {
				return err
			}
			reports++
			s.bar.Count(reports, "reports")
			if strings.HasPrefix(r.Part, "1/") { // whose summary is of all parts
				s.addSummary(&c, out, &r)
			}
			if len(s.report.Revisions) > 0 && !slices.Contains(s.report.Revisions, r.Revision) {
				others[r.Revision] = true
			}
			for i := range r.Results {
				next.add(&r.Results[i])
			}
			return nil
		})
		if err != nil {
			c.Text = "the reports could not be read"
			c.unknown(resource, err)
			return c
		}
	}
	out.Next = next.sorted()
	for i := range out.Next {
		out.Next[i].From = s.settingNow(&out.Next[i])
	}
	if step, ok := s.nextPreset(next); ok {
		out.Next = append(out.Next, step)
	}
	s.report.Existing = out
	c.Text = fmt.Sprintf("findings about existing objects: %d deny, %d warn, %d audit, %d not judged", out.Deny, out.Warn, out.Audit, out.Error)
	if len(others) > 0 && c.State == stateOK {
		c.State = stateUnknown
	}
	for _, revision := range slices.Sorted(maps.Keys(others)) {
		c.Items = append(c.Items, item{"reports", "are about revision " + cmp.Or(revision, "none") + ", by which no replica decides: the scan has not finished"})
	}
	return c
}

func (s *survey) addSummary(c *check, out *existing, r *v1alpha1.PipeReport) {
	out.Deny += int(r.Summary.Deny)
	out.Warn += int(r.Summary.Warn)
	out.Audit += int(r.Summary.Audit)
	out.Error += int(r.Summary.Error)
	out.Namespaces++
	where := "namespace " + r.Namespace
	if r.Namespace == "" {
		where = "PersistentVolumes"
	}
	if r.Summary.Deny > 0 {
		c.no(where, "existing objects would be refused now (%s)", count(int(r.Summary.Deny), "finding"))
	}
	if r.Summary.Error > 0 {
		c.no(where, "%s could not be judged", count(int(r.Summary.Error), "object"))
	}
}

// settingNow is the parameter as it is; that of a PipePolicy is in the object.
func (s *survey) settingNow(n *nextStep) string {
	m := s.report.Modes
	if m == nil || n.Name != "" {
		return ""
	}
	return map[string]string{
		settingAction: m.Action, settingRequirement: m.Requirement, settingHostProcess: m.HostProcess, settingEqualPower: m.EqualPower, settingHostPaths: m.HostPaths,
	}[n.Setting]
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ofParameters begins the names of PipePolicies of the parameters.
const ofParameters = "parameters/"

// nextPreset is what the next stricter preset would refuse of what exists; false if there is none.
func (s *survey) nextPreset(found *steps) (nextStep, bool) {
	if s.report.Preset == nil {
		return nextStep{}, false
	}
	to, ok := s.report.Preset.preset.Next()
	if !ok {
		return nextStep{}, false
	}
	step := nextStep{Setting: settingPreset, From: s.report.Preset.Name, To: to.Name}
	objects := map[v1alpha1.ReportSubject]bool{}
	for key, one := range found.found {
		setting, policy := key[0], key[1]
		switch {
		case policy == "":
		case setting == settingPolicyAction && strings.HasPrefix(policy, ofParameters): // which has that of the parameters
			setting = settingAction
		default:
			continue
		}
		path := "parameters." + setting
		if to.Settings[path] != one.To || s.report.Preset.live[path] == one.To {
			continue
		}
		step.Findings += one.Findings
		step.AtLeast = step.AtLeast || one.AtLeast
		maps.Copy(objects, found.objects[key])
	}
	step.Objects = len(objects)
	return step, true
}
