package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/internal/entries"
)

// Options say what a Keeper keeps.
type Options struct {
	Cluster Cluster
	// Objects and Policies are the names of the configurations for objects, empty if there is none, and for policy objects.
	Objects, Policies string
	// Service is the one that their entries name.
	Service entries.Service
	// CanaryNamespace is where the canary is sent; empty sends none.
	CanaryNamespace string
	// Serves returns what keeps this replica from judging objects, nil if it does. It is asked before anything comes into force.
	Serves func() error
	// Before does what must be done before anything comes into force, which waits while it returns an error. It may be called
	// again. Nil does nothing.
	Before func(context.Context) error
	// InForce is called, once a term, when the configuration for objects is in force. It may be nil.
	InForce func()
	// Changes has a value after any change of a configuration. It may be nil.
	Changes <-chan struct{}
	// Now tells the time; nil is time.Now.
	Now func() time.Time
	Log *zap.Logger
	// Metrics and Events may be nil.
	Metrics *Metrics
	Events  EventRecorder
}

// EventRecorder is what a Keeper uses of the recorder of k8s.io/client-go/tools/events.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// complete sets defaults and returns all that is missing.
func (o *Options) complete() error {
	var faults []error
	need := func(ok bool, field string) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s is missing", field))
		}
	}
	need(o.Cluster != nil, "Cluster")
	need(o.Policies != "", "Policies")
	need(o.Service != entries.Service{}, "Service")
	need(o.Serves != nil, "Serves")
	if o.Before == nil {
		o.Before = func(context.Context) error { return nil }
	}
	if o.InForce == nil {
		o.InForce = func() {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	return errors.Join(faults...)
}
