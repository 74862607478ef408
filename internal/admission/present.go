package admission

import (
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// pass is the answer for an object that holds nothing to decide: no id, no annotation, no record.
func (r *Reviewer) pass(j *judgement) Result {
	return Result{Allowed: true, Effect: EffectAllow, Status: http.StatusOK, Revision: j.snapshot.Revision()}
}

// refuse is the answer where there is no decision.
func (r *Reviewer) refuse(req *admissionv1.AdmissionRequest, j *judgement, fail *failure) Result {
	j.id = r.o.NewID()
	res := Result{
		Effect:     EffectDeny,
		Code:       CodeFailure,
		Codes:      []string{CodeFailure},
		Reason:     fail.reason,
		Status:     fail.status,
		Message:    failureMessage(fail.reason, fail.err.Error(), j.id),
		DecisionID: j.id,
		name:       plain(req.Name, maxName),
		kind:       plain(req.Kind.Kind, maxName),
	}
	if j.snapshot != (policy.Snapshot{}) {
		res.Revision = j.snapshot.Revision()
	}
	res.annotate()
	return res
}

// present puts a decision into words.
func (r *Reviewer) present(j *judgement) Result {
	j.id = r.o.NewID()
	rules := func(code string) policy.Rule { rule, _ := j.snapshotRule(code); return rule }
	j.decision.Findings = guardedFirst(j.input, j.decision.Findings)
	denied := denials(j.decision)
	res := Result{
		Allowed:    j.decision.Allowed && len(denied) == 0,
		Effect:     EffectAllow,
		Status:     http.StatusOK,
		Findings:   j.decision.Findings,
		Unchanged:  j.unchanged,
		Static:     j.static,
		DecisionID: j.id,
		Revision:   j.decision.Revision,
		name:       plain(j.input.Name, maxName),
		kind:       plain(j.input.Kind.Kind, maxName),
	}
	res.rank()
	d := &describer{in: j.input}
	res.Details = d.details(res.Findings)
	switch {
	case j.unchanged:
		res.Allowed, res.Effect = true, EffectWarn
		res.Warnings = d.warnings(denied, rules, " (unchanged)")
	case j.static:
		res.Allowed, res.Effect = true, EffectWarn
		res.Warnings = d.warnings(denied, rules, " (static pod)")
	case !res.Allowed:
		refused := refusals(res.Details)
		res.Status = http.StatusForbidden
		res.Message = denialMessage(j.input, refused, rules, j.id, res.Revision)
		res.Causes = causes(refused)
	}
	warned := slices.DeleteFunc(slices.Clone(j.decision.Findings), func(f policy.Finding) bool { return f.Effect != policy.EffectWarn })
	res.Warnings = append(res.Warnings, d.warnings(warned, rules, "")...)
	if res.Allowed {
		res.Warnings = append(res.Warnings, r.unserved(j)...)
	}
	res.annotate()
	return res
}

// rank finds the strongest effect, the code that it comes from, and all codes.
func (r *Result) rank() {
	strength := func(e Effect) int { return slices.Index([]Effect{EffectAllow, EffectAudit, EffectWarn, EffectDeny}, e) }
	for _, f := range r.Findings {
		effect := EffectDeny // an unknown effect refuses
		switch f.Effect {
		case policy.EffectAudit:
			effect = EffectAudit
		case policy.EffectWarn:
			effect = EffectWarn
		case policy.EffectDeny:
		}
		c := code(f)
		if strength(effect) > strength(r.Effect) {
			r.Effect, r.Code = effect, c
		}
		if !slices.Contains(r.Codes, c) {
			r.Codes = append(r.Codes, c)
		}
	}
}

func (r *Result) annotate() {
	r.AuditAnnotations = map[string]string{annotationDecision: r.DecisionID, annotationEffect: string(r.Effect)}
	if r.Revision != "" {
		r.AuditAnnotations[annotationRevision] = r.Revision
	}
	if len(r.Codes) > 0 {
		r.AuditAnnotations[annotationCodes] = strings.Join(r.Codes, ",")
	}
	if r.Unchanged {
		r.AuditAnnotations[annotationUnchanged] = "true"
	}
	if r.Static {
		r.AuditAnnotations[annotationStatic] = "true"
	}
}
