package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pipeguard/pipeguard/internal/controller"
	"github.com/pipeguard/pipeguard/internal/controller/keepfloor"
	"github.com/pipeguard/pipeguard/internal/controller/leader"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// floorLabels are those by which the floor's objects are known as the webhook's own.
var floorLabels = map[string]string{"app.kubernetes.io/managed-by": "pipeguard", "app.kubernetes.io/component": "floor"}

// check reports what is wrong with the options.
func (o *floorOptions) check(fault report) {
	if o.Mode != keepfloor.Off && !o.Mode.IsKept() {
		fault("floor.mode", "%q: want Off, Always or Only", o.Mode)
	}
	if len(validation.NameIsDNSSubdomain(o.Name, false)) > 0 {
		fault("floor.name", "%q is no name of an object", o.Name)
	}
	if o.ClusterRole == "" || !isPathSegment(o.ClusterRole) {
		fault("floor.clusterRole", "%q is no name of a ClusterRole", o.ClusterRole)
	}
}

// keptFloor is the floor and what its keeper needs of the other parts, which are made later.
type keptFloor struct {
	mode      keepfloor.Mode
	keeper    *keepfloor.Keeper
	activated func() (controller.Activated, bool)
	refresh   func()      // has statuses looked at
	asked     atomic.Bool // the API server asks the webhook about objects
}

func newFloor(o *options, config *rest.Config, mgr manager.Manager, registry prometheus.Registerer, s *server) (*keptFloor, error) {
	objects, err := keepfloor.NewObjects(config, o.Floor.Name, o.Floor.ClusterRole)
	if err != nil {
		return nil, err
	}
	f := &keptFloor{mode: o.Floor.Mode}
	f.keeper, err = keepfloor.New(keepfloor.Options{
		Objects: objects, Mode: o.Floor.Mode, Name: o.Floor.Name, Labels: floorLabels, Source: f.content, Removable: func() bool { return o.Cluster.WebhookConfig == "" || f.asked.Load() }, Tell: func() { f.refresh() },
		Events: mgr.GetEventRecorder("pipeguard"), Metrics: keepfloor.NewMetrics(registry), Log: s.log,
	})
	return f, err
}

// add gives the leader the keeper.
func (f *keptFloor) add(leads *leader.Group, parts *controller.Parts) {
	f.activated, f.refresh = parts.Activator.Activated, parts.Refresh
	leads.Add(f.keeper)
}

// isAsked hears that the API server asks the webhook about objects, from when on a floor that is to go may.
func (f *keptFloor) isAsked() {
	f.asked.Store(true)
	f.keeper.Changed()
}

// attempted hears of each attempt to activate policies.
func (f *keptFloor) attempted(err error) {
	if err == nil {
		f.keeper.Changed()
	}
}

// content is what decides here.
func (f *keptFloor) content() (keepfloor.Content, bool) {
	active, ok := f.activated()
	if !ok {
		return keepfloor.Content{}, false
	}
	sources := policyset.Sources{Parameters: active.Parameters, PipePolicies: active.PipePolicies}
	return keepfloor.Content{Policies: sources.Policies(), Revision: active.Revision, Attempt: active.Attempt}, true
}

// report is controller.Options.Floor.
func (f *keptFloor) report() func() controller.Floor {
	if !f.mode.IsKept() {
		return nil
	}
	return func() controller.Floor {
		r, _ := f.keeper.Result()
		return controller.Floor{Attempt: r.Attempt, Err: r.Err, LeftOut: r.LeftOut}
	}
}

var errNoFloor = errors.New("the floor has yet to be written")

// tried returns an error until the floor was written, so that it stands before an outage of the webhook can matter. A floor that cannot be written keeps nothing
// else from coming into force.
func (f *keptFloor) tried(context.Context) error {
	select {
	case <-f.keeper.Attempted():
		return nil
	default:
		return errNoFloor
	}
}
