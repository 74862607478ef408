package scan

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// Standard names a kind of report that other projects define and read.
type Standard string

// The standard kinds. Their definitions are not ours: testdata/crds has copies.
const (
	// NoStandard is none of them.
	NoStandard Standard = "None"
	// PolicyReport is wgpolicyk8s.io/v1alpha2 PolicyReport and ClusterPolicyReport, of the Kubernetes policy working group.
	PolicyReport Standard = "PolicyReport"
	// OpenReports is openreports.io/v1alpha1 Report and ClusterReport, their successor.
	OpenReports Standard = "OpenReports"
)

// Check returns an error if there is no such kind.
func (s Standard) Check() error {
	switch s {
	case NoStandard, PolicyReport, OpenReports:
		return nil
	}
	return fmt.Errorf("%q: want None, PolicyReport or OpenReports", string(s))
}

// standardForm writes the reports of a standard kind, which is not NoStandard. Other products write theirs for each object of the cluster,
// so that ours alone are listed.
func standardForm(s Standard) form {
	f := form{selector: managedByLabel + "=" + managedBy, documents: func(parts []v1alpha1.Report) []document { return standardReports(s, parts) }, decode: decodeStandard}
	switch s {
	case PolicyReport:
		group := schema.GroupVersion{Group: "wgpolicyk8s.io", Version: "v1alpha2"}
		f.namespaced = kind{group.WithKind("PolicyReport"), "policyreports", true}
		f.cluster = kind{group.WithKind("ClusterPolicyReport"), "clusterpolicyreports", false}
	case OpenReports:
		group := schema.GroupVersion{Group: "openreports.io", Version: "v1alpha1"}
		f.namespaced = kind{group.WithKind("Report"), "reports", true}
		f.cluster = kind{group.WithKind("ClusterReport"), "clusterreports", false}
	}
	return f
}

// standardReport is the document of a report of a standard kind: the fields that both kinds have, and source, which is
// OpenReports' alone.
type standardReport struct {
	Source  string           `json:"source,omitempty"`
	Summary standardSummary  `json:"summary"`
	Results []standardResult `json:"results,omitempty"`
}

// standardSummary counts findings. None is ever passed or skipped: what has no finding is not in a report.
type standardSummary struct {
	Pass  int32 `json:"pass"`
	Fail  int32 `json:"fail"`
	Warn  int32 `json:"warn"`
	Error int32 `json:"error"`
	Skip  int32 `json:"skip"`
}

type standardResult struct {
	Source     string              `json:"source"`
	Policy     string              `json:"policy"`
	Rule       string              `json:"rule"`
	Category   string              `json:"category"`
	Severity   string              `json:"severity,omitempty"`
	Result     string              `json:"result"`
	Scored     bool                `json:"scored"`
	Message    string              `json:"message"`
	Resources  []standardReference `json:"resources"`
	Properties map[string]string   `json:"properties"`
	Timestamp  *standardTime       `json:"timestamp,omitempty"`
}

type standardReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// standardTime is an instant, since 1970 in UTC.
type standardTime struct {
	Seconds int64 `json:"seconds"`
	Nanos   int32 `json:"nanos"`
}

// category is that of all results.
const category = "Windows host access"

// Outcomes of results. A finding for which the object would be refused is a failure. Others are what the working group
// calls a warning: a requirement that was not met and is not scored.
const (
	resultFail  = "fail"
	resultWarn  = "warn"
	resultError = "error"
)

func standardReports(s Standard, parts []v1alpha1.Report) []document {
	reports := make([]standardReport, len(parts))
	var later standardSummary // of all parts but the first
	for i, part := range parts {
		r := &reports[i]
		if s == OpenReports {
			r.Source = part.Source
		}
		for _, result := range part.Results {
			r.Results = append(r.Results, standardResultOf(s, part.Source, result))
		}
		if i > 0 {
			r.Summary = countOf(r.Results)
			later = later.plus(r.Summary, 1)
		}
	}
	out := make([]document, len(parts))
	for i, r := range reports {
		if i == 0 {
			// Tools add up the summaries of all reports. The first part has the rest: findings too that are not listed one by one.
			r.Summary = totalOf(parts[0].Summary).plus(later, -1)
		}
		out[i] = r
	}
	return out
}

// totalOf puts the summary of all parts into the words of the standard kinds.
func totalOf(s v1alpha1.ReportSummary) standardSummary {
	return standardSummary{Fail: s.Deny, Warn: s.Warn + s.Audit, Error: s.Error}
}

func countOf(results []standardResult) (s standardSummary) {
	for _, r := range results {
		switch r.Result {
		case resultWarn:
			s.Warn++
		case resultError:
			s.Error++
		default:
			s.Fail++
		}
	}
	return s
}

// plus adds more, times a factor.
func (s standardSummary) plus(more standardSummary, times int32) standardSummary {
	s.Fail += times * more.Fail
	s.Warn += times * more.Warn
	s.Error += times * more.Error
	return s
}

// standardResultOf is a finding in the words of the standard kinds. Its texts are bounded already.
func standardResultOf(s Standard, source string, r v1alpha1.ReportResult) standardResult {
	outcome := outcomeOf(r.Effect)
	return standardResult{
		Source: source, Policy: policyOf(source, r.Policies), Rule: r.Rule, Category: category,
		Severity: severityOf(s, r.Severity), Result: outcome, Scored: outcome == resultFail, Message: r.Message,
		Resources: []standardReference{{
			APIVersion: r.Subject.APIVersion, Kind: r.Subject.Kind,
			Namespace: r.Subject.Namespace, Name: r.Subject.Name, UID: string(r.Subject.UID),
		}},
		Properties: propertiesOf(r),
	}
}

func outcomeOf(effect string) string {
	switch effect {
	case effectWarn, effectAudit:
		return resultWarn
	case effectError:
		return resultError
	}
	return resultFail
}

// policyOf is the PipePolicy that governs the pipe if there is just one, else the source: the policy is required.
func policyOf(source string, policies []string) string {
	if len(policies) == 1 {
		return policies[0]
	}
	return source
}

// severityOf is a severity that every published definition of the kind takes; one that none takes would lose the whole
// report. The working group's own v1alpha2 ends at high, and Kyverno's copy of it does not.
func severityOf(s Standard, severity string) string {
	switch severity {
	case "high", "medium", "low":
		return severity
	case "critical":
		if s == OpenReports {
			return severity
		}
		return "high"
	}
	return ""
}

// propertiesOf are the parts of a finding that the standard kinds have no field for.
func propertiesOf(r v1alpha1.ReportResult) map[string]string {
	out := map[string]string{"effect": r.Effect}
	for key, value := range map[string]string{
		"severity": r.Severity, "field": r.Field, "controller": r.Subject.Controller, "policies": strings.Join(r.Policies, ","),
	} {
		if value != "" {
			out[key] = value
		}
	}
	if r.StaticPod {
		out["staticPod"] = "true"
	}
	return out
}

func decodeStandard(raw []byte) (document, error) {
	var r standardReport
	err := json.Unmarshal(raw, &r)
	return r, err
}

func (r standardReport) timeless() any { return r.since(nil) }

// since returns the report with the time in each result.
func (r standardReport) since(at *standardTime) standardReport {
	results := make([]standardResult, len(r.Results))
	for i, result := range r.Results {
		result.Timestamp = at
		results[i] = result
	}
	r.Results = results
	return r
}

func (r standardReport) object(kind metav1.TypeMeta, meta metav1.ObjectMeta, at time.Time) any {
	return &struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		standardReport    `json:",inline"`
	}{kind, meta, r.since(&standardTime{Seconds: at.Unix()})}
}
