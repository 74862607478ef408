package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Kinds of policy objects.
const (
	kindPipePolicy   = policyset.KindPipePolicy
	kindPolicyModule = policyset.KindPolicyModule
)

func keyOf(kind string, o client.Object) ObjectKey {
	return ObjectKey{Kind: kind, Name: o.GetName(), UID: o.GetUID()}
}

// objects are the cluster's policies, as one replica sees them.
type objects interface {
	// watch returns once all objects are known, and calls changed whenever one becomes different afterwards.
	watch(ctx context.Context, changed func()) error
	list(ctx context.Context) (policyObjects, error)
}

// policyObjects are those that count, in the order of their names.
type policyObjects struct {
	pipes   []v1alpha1.PipePolicy
	modules []v1alpha1.PolicyModule
}

func (p policyObjects) generations() map[ObjectKey]int64 {
	out := make(map[ObjectKey]int64, len(p.pipes)+len(p.modules))
	for i := range p.pipes {
		out[keyOf(kindPipePolicy, &p.pipes[i])] = p.pipes[i].Generation
	}
	for i := range p.modules {
		out[keyOf(kindPolicyModule, &p.modules[i])] = p.modules[i].Generation
	}
	return out
}

// counting drops objects that are being deleted, and sorts the others: the cache has no order.
func counting[T any, O interface {
	*T
	client.Object
}](items []T) []T {
	items = slices.DeleteFunc(items, func(t T) bool { return !policyset.Decides(O(&t)) })
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(O(&a).GetName(), O(&b).GetName()) })
	return items
}

// cached reads a manager's cache.
type cached struct{ cache cache.Cache }

func (c cached) watch(ctx context.Context, changed func()) error {
	for _, o := range []client.Object{&v1alpha1.PipePolicy{}, &v1alpha1.PolicyModule{}} {
		if err := notify(ctx, c.cache, o, differs, func(client.Object) { changed() }); err != nil {
			return err
		}
	}
	return nil
}

// notify calls changed when an object of o's kind comes, goes, or is updated so that differs says yes, until ctx is
// done. It returns when those that exist are in the cache.
func notify(ctx context.Context, from cache.Cache, o client.Object, differs func(before, after client.Object) bool, changed func(client.Object)) error {
	informer, err := from.GetInformer(ctx, o)
	if err != nil {
		return fmt.Errorf("watch %T: %w", o, err)
	}
	tell := func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if o, ok := o.(client.Object); ok {
			changed(o)
		}
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		DeleteFunc: tell,
		UpdateFunc: func(before, after any) {
			b, ok := before.(client.Object)
			a, same := after.(client.Object)
			if ok && same && differs(b, a) {
				changed(a)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch %T: %w", o, err)
	}
	context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(handle) }) // fails only for handlers that are not there
	return nil
}

// differs reports whether an update changes what decides. Writing the status does not: it would have every replica attempt again. One
// generation can be told of twice, first without fields that the API server's definition did not have yet.
func differs(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) || !sameSpec(before, after)
}

func sameSpec(before, after client.Object) bool {
	switch b := before.(type) {
	case *v1alpha1.PipePolicy:
		a, ok := after.(*v1alpha1.PipePolicy)
		return ok && a.Unknown == b.Unknown && equality.Semantic.DeepEqual(a.Spec, b.Spec)
	case *v1alpha1.PolicyModule:
		a, ok := after.(*v1alpha1.PolicyModule)
		return ok && a.Unknown == b.Unknown && equality.Semantic.DeepEqual(a.Spec, b.Spec)
	}
	return false
}

func (c cached) list(ctx context.Context) (policyObjects, error) {
	var pipes v1alpha1.PipePolicyList
	if err := c.cache.List(ctx, &pipes); err != nil {
		return policyObjects{}, fmt.Errorf("list PipePolicies: %w", err)
	}
	var modules v1alpha1.PolicyModuleList
	if err := c.cache.List(ctx, &modules); err != nil {
		return policyObjects{}, fmt.Errorf("list PolicyModules: %w", err)
	}
	return policyObjects{counting(pipes.Items), counting(modules.Items)}, nil
}
