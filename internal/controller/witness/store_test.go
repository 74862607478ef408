package witness

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

// api is an API server that has ConfigMaps.
type api struct {
	client.Client
	all map[string]*corev1.ConfigMap
}

func (a *api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o, ok := a.all[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	o.DeepCopyInto(into.(*corev1.ConfigMap))
	return nil
}

func (a *api) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return a.keep(o)
}

func (a *api) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return a.keep(o)
}

func (a *api) keep(o client.Object) error {
	kept := o.(*corev1.ConfigMap).DeepCopy()
	kept.ResourceVersion += "x"
	a.all[o.GetName()] = kept
	return nil
}

// Who may update the ConfigMap and not delete it lets no log start over.
func TestAMemoryThatWasEmptiedIsNoNewLog(t *testing.T) {
	server := &api{all: map[string]*corev1.ConfigMap{}}
	memory := &ConfigMaps{configmaps.Store{Namespace: "pipeguard-system", Client: server}}
	p := newPlace(t, nil)
	p.o.Memory = memory
	n := witnesstest.NewNode(t, "win-1")
	p.gives(t, n)
	before := n.Files()
	if err := p.client(t).Send(t.Context(), n.Grow(9)); err != nil {
		t.Fatalf("a log that is new: %v", err)
	}
	if err := p.client(t).Send(t.Context(), n.Grow(1)); err != nil {
		t.Fatalf("a log that is known: %v", err)
	}
	n.RollBack(before)
	name := ConfigMapName(n.Origin())
	good := server.all[name].Data
	back := witnesstest.Request(t, 0, n.Grow(1))
	spoilt := map[string]map[string]string{
		"without data":         nil,
		"without a checkpoint": {keyOrigin: n.Origin()},
		"an empty checkpoint":  {keyOrigin: n.Origin(), keyCheckpoint: ""},
		"with a pin alone":     {keyPinned: n.Key.LogKey() + "\n"},
		"without an origin":    {keyCheckpoint: good[keyCheckpoint]},
	}
	for what, data := range spoilt {
		server.all[name].Data = data
		if _, err := memory.Read(t.Context(), n.Origin()); !errors.Is(err, ErrMemory) {
			t.Errorf("%s: %v", what, err)
		}
		if status := p.post(t, back); status != 503 {
			t.Errorf("%s: a log that was rolled back: %d", what, status)
		}
	}
	if got := p.refusals()[reasonStore]; got != len(spoilt) {
		t.Errorf("%v", p.refusals())
	}
	delete(server.all, name) // the operator's way
	if status := p.post(t, back); status != 200 {
		t.Errorf("after it was deleted: %d", status)
	}
}
