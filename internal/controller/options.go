package controller

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Options configure the parts. Fields without a default are needed.
type Options struct {
	// Engine evaluates the policies. Nothing else may activate policies with it.
	Engine *policy.Engine
	// Base returns the policy and the parameters that go with the cluster's objects. It is called for each attempt, and
	// after an error again every Retry. Tell Activator.Changed when it would return something else.
	Base func() (policy.Modules, admission.Parameters, error)
	// Assemble makes one set of modules of everything. Objects come in the order of their names. An error about an object
	// should be, or join, a *policyset.ObjectError.
	Assemble func(base policy.Modules, params admission.Parameters, pipes []v1alpha1.PipePolicy, modules []v1alpha1.PolicyModule) (policy.Modules, error)
	// Attempted hears of each attempt whose content differs from the one before, with the new snapshot or the error. May be nil.
	Attempted func(policy.Snapshot, error)

	// Namespace and PodName say which replica this is.
	Namespace, PodName string
	// Violations returns how many existing objects the last scan found that no policy permits to have a pipe of the
	// PipePolicy, and false if it is not known. May be nil.
	Violations func(policy string) (int32, bool)
	// OtherModes returns how many pods the last scan found whose containers are subjects of the PipePolicy but for their mode, and false if it is not known.
	// May be nil.
	OtherModes func(policy string) (map[admission.OtherMode]int32, bool)

	// Bundles returns what became of policies on their way to nodes. Nil means that no bundles are made. Tell Parts.Refresh
	// when it would return something else.
	Bundles func() Bundles

	// Floor returns what became of the floor. Nil means that none is kept. Tell Parts.Refresh when it would return something else.
	Floor func() Floor

	// Registerer takes the metrics. Nil registers none.
	Registerer prometheus.Registerer
	// Log receives diagnostics. Default none.
	Log *zap.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() (Options, error) {
	if o.Attempted == nil {
		o.Attempted = func(policy.Snapshot, error) {}
	}
	if o.Violations == nil {
		o.Violations = func(string) (int32, bool) { return 0, false }
	}
	if o.OtherModes == nil {
		o.OtherModes = func(string) (map[admission.OtherMode]int32, bool) { return nil, false }
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Now == nil {
		o.Now = time.Now
	}
	var faults []error
	for _, need := range []struct {
		name    string
		missing bool
	}{
		{"Engine", o.Engine == nil}, {"Base", o.Base == nil}, {"Assemble", o.Assemble == nil},
		{"Namespace", o.Namespace == ""}, {"PodName", o.PodName == ""},
	} {
		if need.missing {
			faults = append(faults, fmt.Errorf("option %s is missing", need.name))
		}
	}
	if name := leaseName(o.PodName); len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		faults = append(faults, fmt.Errorf("option PodName %q: no Lease can have the name %s", o.PodName, name))
	}
	return o, errors.Join(faults...)
}
