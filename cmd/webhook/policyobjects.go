package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// policiesPath is where policy objects are judged, before the API server stores them.
const policiesPath = "/validate-policies"

const (
	// maxPolicyReviews bounds the policy objects that wait for their turn to be judged.
	maxPolicyReviews = 32
	// maxPolicyCauses bounds the places that an answer names.
	maxPolicyCauses = 20
	// maxPolicyWarning is the length that the API asks of a warning.
	maxPolicyWarning = 120
)

// policyObjects judges PipePolicies and PolicyModules: an object is refused that would keep the policies from deciding.
// It protects authors from mistakes. Nothing rests on it: whatever is stored is put together, compiled, tested and checked
// again by each replica before it decides.
type policyObjects struct {
	// sources are those that stand now.
	sources func(ctx context.Context) (policyset.Sources, error)
	now     func() time.Time
	log     *zap.Logger
	// validators has the one that there is: each compiles everything.
	validators chan *policyset.Validator
}

func newPolicyObjects(sources func(context.Context) (policyset.Sources, error), log *zap.Logger) (*policyObjects, error) {
	validator, err := policyset.NewValidator()
	if err != nil {
		return nil, err
	}
	p := &policyObjects{sources: sources, now: time.Now, log: log, validators: make(chan *policyset.Validator, 1)}
	p.validators <- validator
	return p, nil
}

// Handle implements controller-runtime's admission.Handler.
func (p *policyObjects) Handle(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return deniedPolicy(http.StatusForbidden, req, fmt.Sprintf("operation %q is not judged here", req.Operation), nil)
	}
	if req.Kind.Group != v1alpha1.Group || req.Kind.Version != v1alpha1.GroupVersion().Version {
		return deniedPolicy(http.StatusForbidden, req, "objects of this group and version are not judged here", nil)
	}
	var validator *policyset.Validator
	select {
	case validator = <-p.validators:
		defer func() { p.validators <- validator }()
	case <-ctx.Done():
		return deniedPolicy(http.StatusTooManyRequests, req, "another policy object is being judged; try again", nil)
	}
	sources, err := p.sources(ctx)
	if err != nil {
		p.log.Error("policy objects cannot be listed", zap.Error(err))
		return deniedPolicy(http.StatusInternalServerError, req, "the policies that stand cannot be read: "+err.Error(), nil)
	}
	switch req.Kind.Kind {
	case policyset.KindPipePolicy:
		return p.pipePolicy(ctx, req, validator, sources)
	case policyset.KindPolicyModule:
		return p.policyModule(ctx, req, validator, sources)
	}
	return deniedPolicy(http.StatusForbidden, req, "objects of this kind are not judged here", nil)
}

func (p *policyObjects) pipePolicy(ctx context.Context, req ctrladmission.Request, validator *policyset.Validator, sources policyset.Sources) ctrladmission.Response {
	var object v1alpha1.PipePolicy
	if err := policyset.Decode(req.Object.Raw, &object); err != nil {
		return deniedPolicy(http.StatusBadRequest, req, err.Error(), nil)
	}
	if object.DeletionTimestamp != nil { // only finalizers change now, and it decides no more
		return ctrladmission.Allowed("")
	}
	if faults := append(policyset.CheckMetadata(&object.ObjectMeta), policyset.CheckPipePolicy(&object)...); len(faults) > 0 {
		return deniedPolicy(http.StatusUnprocessableEntity, req, faults.ToAggregate().Error(), causesOf(faults))
	}
	fault, elsewhere := validator.Examine(ctx, sources.WithPipePolicy(object), policyset.KindPipePolicy, object.Name)
	if fault != nil {
		return deniedPolicy(http.StatusUnprocessableEntity, req, fault.Error(), nil)
	}
	return ctrladmission.Allowed("").WithWarnings(append(clipped(policyset.Warnings(&object, p.now())), elsewhereWarning(elsewhere)...)...)
}

func (p *policyObjects) policyModule(ctx context.Context, req ctrladmission.Request, validator *policyset.Validator, sources policyset.Sources) ctrladmission.Response {
	var object v1alpha1.PolicyModule
	if err := policyset.Decode(req.Object.Raw, &object); err != nil {
		return deniedPolicy(http.StatusBadRequest, req, err.Error(), nil)
	}
	if object.DeletionTimestamp != nil {
		return ctrladmission.Allowed("")
	}
	if faults := append(policyset.CheckMetadata(&object.ObjectMeta), policyset.CheckPolicyModule(&object)...); len(faults) > 0 {
		return deniedPolicy(http.StatusUnprocessableEntity, req, faults.ToAggregate().Error(), causesOf(faults))
	}
	fault, elsewhere := validator.Examine(ctx, sources.WithPolicyModule(object), policyset.KindPolicyModule, object.Name)
	if fault == nil {
		return ctrladmission.Allowed("").WithWarnings(elsewhereWarning(elsewhere)...)
	}
	byModule, others := policyset.ProblemsOf(fault)
	faults := fieldErrors(&object, byModule[object.Name])
	if len(faults) == 0 {
		return deniedPolicy(http.StatusUnprocessableEntity, req, strings.Join(others, "\n"), nil)
	}
	return deniedPolicy(http.StatusUnprocessableEntity, req, faults.ToAggregate().Error(), causesOf(faults))
}

// fieldErrors puts problems at the fields that hold the files, with line and column.
func fieldErrors(m *v1alpha1.PolicyModule, problems []v1alpha1.Problem) field.ErrorList {
	var faults field.ErrorList
	modules := field.NewPath("spec", "modules")
	for _, p := range problems[:min(len(problems), maxPolicyCauses)] {
		at := modules
		if i := slices.IndexFunc(m.Spec.Modules, func(f v1alpha1.RegoFile) bool { return f.Name == p.File }); i >= 0 {
			at = modules.Index(i).Child("rego")
		}
		where := p.File
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d", p.File, p.Line)
			if p.Column > 0 {
				where = fmt.Sprintf("%s:%d", where, p.Column)
			}
		}
		faults = append(faults, field.Invalid(at, field.OmitValueType{}, where+": "+p.Code+": "+p.Message))
	}
	return faults
}

// clipped are warnings of the length that the API asks for.
func clipped(warnings []string) []string {
	for i, text := range warnings {
		warnings[i] = strings.ToValidUTF8(text[:min(len(text), maxPolicyWarning)], "")
	}
	return warnings
}

func elsewhereWarning(err error) []string {
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	text = "stored, but other policies are unfit, so nothing changes yet: " + text
	return []string{strings.ToValidUTF8(text[:min(len(text), maxPolicyWarning)], "")}
}

func causesOf(faults field.ErrorList) []metav1.StatusCause {
	out := make([]metav1.StatusCause, 0, len(faults))
	for _, f := range faults[:min(len(faults), maxPolicyCauses)] {
		out = append(out, metav1.StatusCause{Type: metav1.CauseType(f.Type), Message: f.ErrorBody(), Field: f.Field})
	}
	return out
}

// maxPolicyMessage bounds an answer: a compiler can have a lot to say.
const maxPolicyMessage = 8 << 10

func deniedPolicy(status int32, req ctrladmission.Request, message string, causes []metav1.StatusCause) ctrladmission.Response {
	if len(message) > maxPolicyMessage {
		message = strings.ToValidUTF8(message[:maxPolicyMessage], "") + " …"
	}
	reason := metav1.StatusReasonInvalid
	switch status {
	case http.StatusBadRequest:
		reason = metav1.StatusReasonBadRequest
	case http.StatusForbidden:
		reason = metav1.StatusReasonForbidden
	case http.StatusTooManyRequests:
		reason = metav1.StatusReasonTooManyRequests
	case http.StatusInternalServerError:
		reason = metav1.StatusReasonInternalError
	}
	return ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    status,
		Reason:  reason,
		Message: message,
		Details: &metav1.StatusDetails{Name: req.Name, Group: req.Kind.Group, Kind: req.Kind.Kind, Causes: causes},
	}}}
}
