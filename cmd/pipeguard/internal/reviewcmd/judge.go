package reviewcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/apiserver"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// judge gives the webhook's verdicts with one set of policies.
type judge struct {
	reviewer  *admission.Reviewer
	revision  string
	namespace string // of objects that name none; empty means fallback
	fallback  string // empty means "default"
	ignored   []string
	// readsObject is true if the policies may read input.object, and so are asked about every object here.
	readsObject bool
}

// newJudge activates policies. namespaces may be nil.
func newJudge(ctx context.Context, s policysource.Sources, o reviewOptions, namespaces admission.NamespaceLabels) (*judge, error) {
	reviewer, active, err := s.Reviewer(ctx, namespaces)
	if err != nil {
		return nil, err
	}
	return &judge{reviewer, active.Revision(), o.namespace, o.fallback, o.ignored, active.NeedsObject()}, nil
}

func (j *judge) report(ctx context.Context, objects []manifest.Object, faults []manifest.Fault) reviewReport {
	report := reviewReport{
		Schema: "pipeguard.dev/review/v1", Revision: j.revision, Objects: []reviewObject{}, Faults: faultsOf(faults),
	}
	for _, o := range objects {
		judged, err := j.judge(ctx, o)
		if err != nil {
			report.Faults = append(report.Faults, reviewFault{o.Place, err.Error()})
			continue
		}
		report.Objects = append(report.Objects, judged)
	}
	report.conclude()
	return report
}

func (j *judge) judge(ctx context.Context, o manifest.Object) (reviewObject, error) {
	out := reviewObject{
		Place: o.Place, APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
		Verdict: verdictNotJudged, Warnings: []string{}, Findings: []policy.Finding{},
	}
	request, err := j.request(o, &out)
	if err != nil || request == nil {
		return out, err
	}
	return j.answer(ctx, request, out)
}

// request is what the API server would send about an object, as if it were being created, or an AdmissionReview's request as it stands. It gives out their
// place. Nothing is sent about a kind that is harmless or left aside.
func (j *judge) request(o manifest.Object, out *reviewObject) (*admissionv1.AdmissionRequest, error) {
	gk := groupKind(o.APIVersion, o.Kind)
	switch judgementOf(o.APIVersion, o.Kind, j.ignored) {
	case judgeObject:
		return j.creation(o, out)
	case judgeReview:
		request, err := admission.DecodeReview(o.JSON)
		if err != nil {
			return nil, err
		}
		out.Namespace, out.Name = request.Namespace, request.Name
		return request, nil
	case judgeHarmless, judgeLeftAside:
		return nil, nil
	case judgeOtherVersion:
		return nil, fmt.Errorf("kind %s is judged, but not as %s", gk, o.APIVersion)
	}
	return nil, fmt.Errorf("kind %s (%s) is not known here, and might lead to pods; to leave it aside, use --ignore %s", gk, o.APIVersion, gk)
}

// place gives an object its namespace by the rules of kubectl.
func (j *judge) place(o *reviewObject) error {
	switch {
	case o.Namespace == "" && j.namespace == "":
		o.Namespace = cmp.Or(j.fallback, metav1.NamespaceDefault)
	case o.Namespace == "":
		o.Namespace = j.namespace
	case j.namespace != "" && o.Namespace != j.namespace:
		return fmt.Errorf("the object is in namespace %q, --namespace says %q", o.Namespace, j.namespace)
	}
	return nil
}

func (j *judge) creation(o manifest.Object, out *reviewObject) (*admissionv1.AdmissionRequest, error) {
	request, err := admission.ObjectReview(o.JSON)
	if err != nil {
		return nil, err
	}
	if err := apiserver.Refuses(request.Kind, o.JSON); err != nil {
		return nil, err
	}
	if request.Namespace == "" { // a kind without namespaces
		return request, nil
	}
	if err := j.place(out); err != nil {
		return nil, err
	}
	request.Namespace = out.Namespace
	return request, nil
}

// noteOnPlain is for the result of an object that those conditions keep back.
const noteOnPlain = "judged because rules read input.object; the webhook's match conditions would not send this object to it"

func (j *judge) answer(ctx context.Context, request *admissionv1.AdmissionRequest, out reviewObject) (reviewObject, error) {
	result := j.reviewer.Review(ctx, request)
	switch result.Reason {
	case admission.ReasonOperation, admission.ReasonKind, admission.ReasonObject:
		// The webhook refuses these as well, but for what they are and not for what they ask.
		return out, errors.New(result.Message)
	}
	out.Verdict = verdictDenied
	if result.Allowed {
		out.Verdict = verdictAllowed
	}
	out.Code, out.Message = result.Code, result.Message
	if result.Plain && j.readsObject {
		out.Note = noteOnPlain
	}
	out.Warnings = append(out.Warnings, result.Warnings...)
	out.Findings = append(out.Findings, result.Findings...)
	return out, nil
}
