package controller

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// NewInformer is for cache.Options.NewInformer of the cache that CacheOf describes. Its informers of policies list them anew after each
// watch, which ends every five to ten minutes, and whenever their definition has changed: see ADR 0079.
func NewInformer(from toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	switch o.(type) {
	case *v1alpha1.PipePolicy, *v1alpha1.PolicyModule:
		// Without resyncs an informer tells its handlers also of an object that was listed again under the same resourceVersion.
		return toolscache.NewSharedIndexInformer(&unresumed{from: toolscache.ToListerWatcherWithContext(from)}, o, 0, indexers)
	}
	return toolscache.NewSharedIndexInformer(from, o, resync, indexers)
}

// unresumed answers that a resourceVersion has expired when a watch is to go on where another one ended. The API server tells of custom
// resources by the definition that it served when the watch began, for a second or longer after the definition has changed: without fields
// that are new. To go on from such a watch would leave them out until the object changes again.
type unresumed struct {
	from   toolscache.ListerWatcherWithContext
	listed atomic.Bool // and not watched since
}

// IsWatchListSemanticsUnSupported answers a reflector, which asks it of who can only list.
func (u *unresumed) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(u.from)
}

func (u *unresumed) List(o metav1.ListOptions) (runtime.Object, error) {
	return u.ListWithContext(context.Background(), o)
}

func (u *unresumed) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return u.WatchWithContext(context.Background(), o)
}

func (u *unresumed) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := u.from.ListWithContext(ctx, o)
	if err == nil {
		u.listed.Store(true)
	}
	return list, err
}

func (u *unresumed) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	listed := u.listed.Swap(false)
	if lists := o.SendInitialEvents != nil && *o.SendInitialEvents; !listed && !lists {
		return nil, apierrors.NewResourceExpired("policies are listed anew after each watch")
	}
	return u.from.WatchWithContext(ctx, o)
}
