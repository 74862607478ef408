package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// record writes the audit record of res. If it cannot be written and must be, res becomes a refusal.
func (r *Reviewer) record(ctx context.Context, req *admissionv1.AdmissionRequest, j *judgement, res *Result) {
	if r.o.Audit == nil {
		return
	}
	// The record outlives a caller who hangs up.
	_, err := r.o.Audit.Append(context.WithoutCancel(ctx), r.event(req, j, res))
	if err == nil {
		return
	}
	r.o.Metrics.AuditFailed()
	r.o.Log.Error("audit record not written", zap.String(logkeys.AuditID, res.DecisionID), zap.Error(err))
	if res.Allowed && r.o.AuditRequired {
		*res = r.refuse(req, j, cannotJudge(ReasonAudit, http.StatusForbidden, errors.New("the audit record cannot be written")))
	}
}

func (r *Reviewer) event(req *admissionv1.AdmissionRequest, j *judgement, res *Result) *audit.Event {
	e := &audit.Event{
		Type:  audit.TypeAdmission,
		Stage: audit.StageResponseComplete,
		Time:  j.start.UTC(),
		ID:    res.DecisionID,
		Who: &audit.Who{
			Assurance: "apiserver", // the API server authenticated the user
			User:      &audit.WhoUser{Name: req.UserInfo.Username, Groups: req.UserInfo.Groups},
			Pod:       &audit.WhoPod{Namespace: req.Namespace, Name: req.Name},
		},
		What:     &audit.What{Verb: string(req.Operation)},
		Decision: &audit.Decision{Effect: audit.EffectDeny, Reason: res.Reason, Rule: res.Code, Mode: "Enforce"},
		Outcome:  &audit.Outcome{Result: "denied", Code: strconv.Itoa(int(res.Status)), LatencyUS: r.o.Now().Sub(j.start).Microseconds()},
		Corr:     &audit.Corr{AdmissionUID: string(req.UID)},
	}
	if res.Revision != "" {
		e.Decision.Policy = &audit.Policy{Revision: res.Revision}
	}
	if res.Allowed {
		e.Decision.Effect, e.Outcome.Result = audit.EffectAllow, "ok"
	}
	if res.Code == CodeFailure {
		e.Outcome.Result = "rejected"
	}
	if e.Decision.Reason == "" {
		e.Decision.Reason = reasonOf(res)
	}
	if j.input != nil {
		e.Who.Pod.Name, e.Who.Pod.ServiceAccount = j.input.Name, j.input.ServiceAccount
		e.What.Targets, e.What.MoreTargets = targets(j.input, j.decision.Findings)
	}
	if kind, ok := judgedKindOf(req.Kind); ok && kind.Kind != "Pod" {
		// The object is no pod. Its pods, if it makes any, have its namespace and service account, and names of their own.
		e.What.Params = objectParams(req, e.Who.Pod.Name)
		e.Who.Pod.Name = ""
		if kind.isCluster {
			e.Who.Pod = nil
		}
	}
	return e
}

// objectParams names the object of a request that is not about a pod.
func objectParams(req *admissionv1.AdmissionRequest, name string) json.RawMessage {
	text, err := json.Marshal(struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name"`
	}{kindName(req.Kind), req.Namespace, name})
	if err != nil {
		panic(fmt.Errorf("encode the name of an object: %w", err)) // it consists of texts
	}
	return text
}

func reasonOf(res *Result) string {
	switch {
	case res.Unchanged:
		return "unchanged"
	case res.Static:
		return "static pod"
	case len(res.Codes) == 0:
		return "no finding"
	}
	return strings.Join(res.Codes, ",")
}
