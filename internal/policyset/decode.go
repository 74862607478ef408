package policyset

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// Add takes a policy object as JSON. An object of another kind, or with fields that its type does not have, is an error.
func (s *Sources) Add(apiVersion, kind string, raw []byte) error {
	if apiVersion != v1alpha1.GroupVersion().String() {
		return fmt.Errorf("%s %s is no policy object", apiVersion, kind)
	}
	switch kind {
	case KindPipePolicy:
		var p v1alpha1.PipePolicy
		if err := decodeNew(raw, &p, &p.ObjectMeta); err != nil {
			return err
		}
		s.PipePolicies = append(s.PipePolicies, p)
	case KindPolicyModule:
		var m v1alpha1.PolicyModule
		if err := decodeNew(raw, &m, &m.ObjectMeta); err != nil {
			return err
		}
		s.PolicyModules = append(s.PolicyModules, m)
	default:
		return fmt.Errorf("%s %s is no policy object", apiVersion, kind)
	}
	return nil
}

// decodeNew reads an object that is about to be stored.
func decodeNew(raw []byte, into any, meta *metav1.ObjectMeta) error {
	if err := Decode(raw, into); err != nil {
		return err
	}
	return CheckMetadata(meta).ToAggregate()
}

// Decode reads one JSON object as the API server does, by the exact case of its keys, and strictly: a field that the type does not have would mean nothing, and an author who wrote
// it meant something.
func Decode(raw []byte, into any) error {
	strict, err := json.UnmarshalStrict(raw, into)
	if err = errors.Join(append(strict, err)...); err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	return nil
}

// ReadPipePolicy reads the spec of a PipePolicy in JSON, by the rules of an object of the API. It is the admission.PolicyReader of parameters.
func ReadPipePolicy(name string, spec []byte) (admission.PipePolicy, []error) {
	p := v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := Decode(spec, &p.Spec); err != nil {
		return admission.PipePolicy{}, []error{err}
	}
	var faults []error
	for _, fault := range CheckPipePolicy(&p) {
		if at, isWithin := strings.CutPrefix(fault.Field, "spec."); isWithin {
			fault.Field = at
			faults = append(faults, fault)
		} else { // the text names the field
			faults = append(faults, errors.New(fault.Detail))
		}
	}
	out := pipePolicy(&p)
	if len(faults) == 0 {
		out.Warnings = Warnings(&p, time.Now())
	}
	return out, faults
}
