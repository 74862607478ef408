package certs

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
)

// Options say how a Rotator works. A duration of zero is the default.
type Options struct {
	Names Names
	Store Store
	// Authority is how long an authority is valid, 365 days by default. The next is made when a third is left: then
	// there are four months to notice that the succession cannot take place, for want of a permission, say. It takes
	// place often enough to stay in practice.
	Authority time.Duration
	// Leaf is how long a served certificate is valid, 30 days by default, renewed when a third is left. No API server
	// asks whether a certificate was revoked: this is how long one that was stolen without the authority can be used.
	Leaf time.Duration
	// Grace is how long a new authority stands in every configuration before it signs, 2 minutes by default. An API
	// server that learns of it later misses requests.
	Grace time.Duration
	// Keep is how long an authority stays in the configurations after its last certificate was replaced, 1 hour by
	// default. A replica that hears of the replacement later serves what no API server trusts.
	Keep time.Duration
	// Interval is how often everything is looked at without being asked, 1 minute by default.
	Interval time.Duration
	// Now tells the time; nil is time.Now.
	Now func() time.Time
	Log *zap.Logger
	// Metrics and Events may be nil.
	Metrics *Metrics
	Events  EventRecorder
}

// EventRecorder is what a Rotator uses of the recorder of k8s.io/client-go/tools/events.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// complete sets defaults and returns all that is wrong.
func (o *Options) complete() error {
	o.Authority, o.Leaf = cmp.Or(o.Authority, 365*24*time.Hour), cmp.Or(o.Leaf, 30*24*time.Hour)
	o.Grace, o.Keep, o.Interval = cmp.Or(o.Grace, 2*time.Minute), cmp.Or(o.Keep, time.Hour), cmp.Or(o.Interval, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	faults := []error{o.Names.check(true)}
	if o.Store == nil {
		faults = append(faults, errors.New("no store"))
	}
	for name, d := range map[string]time.Duration{"Authority": o.Authority, "Leaf": o.Leaf, "Grace": o.Grace, "Keep": o.Keep, "Interval": o.Interval} {
		if d < 0 {
			faults = append(faults, fmt.Errorf("%s %v is negative", name, d))
		}
	}
	if o.Leaf > o.Authority/3 {
		faults = append(faults, fmt.Errorf("Leaf %v is more than a third of Authority %v: a certificate would outlive its authority", o.Leaf, o.Authority)) //nolint:staticcheck // the field's name
	}
	if handover := o.Grace + o.Keep + o.Interval; handover > o.Leaf/3 {
		faults = append(faults, fmt.Errorf("Grace, Keep and Interval take %v together, more than a third of Leaf %v: a hand-over would not end in time", handover, o.Leaf)) //nolint:staticcheck // the field's name
	}
	return errors.Join(faults...)
}
