package certs

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watch holds the copy of one object. It asks for that name alone: it is all that the process may read, and an API
// server allows a watch of one name to a client that may not watch all.
type watch struct {
	store      toolscache.Store
	controller toolscache.Controller
}

// newWatch calls changed after each change. The list says of what kind the object is.
func newWatch(c client.WithWatch, object client.Object, list client.ObjectList, key client.ObjectKey, changed func()) *watch {
	selected := func(raw *metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name), Raw: raw}
	}
	w := &watch{}
	w.store, w.controller = toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: &toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				found, ok := list.DeepCopyObject().(client.ObjectList)
				if !ok {
					return nil, fmt.Errorf("%T is not a list", list)
				}
				err := c.List(ctx, found, selected(&o))
				return found, err
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
				return c.Watch(ctx, list, selected(&o))
			},
		},
		ObjectType: object,
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		},
	})
	return w
}

// get returns the object, nil if there is none. It returns false while that is not known. An object that is there is known before the first list
// counts as taken in: its handler, which looks here, is called before that.
func (w *watch) get() (any, bool) {
	if all := w.store.List(); len(all) > 0 {
		return all[0], true
	}
	return nil, w.controller.HasSynced()
}
