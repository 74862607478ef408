package controller

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// definitions lists and watches one PipePolicy as an API server does whose definition lacks a field at first.
type definitions struct {
	later   atomic.Bool
	watches chan *watch.FakeWatcher
}

func (d *definitions) policy() *v1alpha1.PipePolicy {
	p := pipePolicy("p", 2)
	p.ResourceVersion = "7"
	if d.later.Load() {
		p.Unknown = "spec.zones"
	}
	return &p
}

func (d *definitions) listWatch() *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1alpha1.PipePolicyList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []v1alpha1.PipePolicy{*d.policy()}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				w.Add(d.policy())
				end := d.policy()
				end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				w.Action(watch.Bookmark, end)
			}
			d.watches <- w
			return w, nil
		},
	}
}

// listing hides that a ListWatch can list by watching.
type listing struct{ *toolscache.ListWatch }

func (listing) IsWatchListSemanticsUnSupported() bool { return true }

func TestPoliciesAreListedAnewAfterEachWatch(t *testing.T) {
	for name, from := range map[string]func(*definitions) toolscache.ListerWatcher{
		"listed by a watch": func(d *definitions) toolscache.ListerWatcher { return d.listWatch() },
		"listed":            func(d *definitions) toolscache.ListerWatcher { return listing{d.listWatch()} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &definitions{watches: make(chan *watch.FakeWatcher, 10)}
				informer := NewInformer(from(d), &v1alpha1.PipePolicy{}, 0, nil)
				var told atomic.Int64
				handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
					if differs(before.(*v1alpha1.PipePolicy), after.(*v1alpha1.PipePolicy)) {
						told.Add(1)
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); informer.RunWithContext(ctx) }()
				toolscache.WaitForCacheSync(ctx.Done(), handle.HasSynced)
				d.later.Store(true)
				for range 2 { // the second one tells of nothing new
					time.Sleep(time.Minute) // a reflector lists anew by itself after less than a second
					(<-d.watches).Stop()
				}
				<-d.watches
				synctest.Wait()
				if o := informer.GetStore().List(); len(o) != 1 || o[0].(*v1alpha1.PipePolicy).Unknown != "spec.zones" || told.Load() != 1 {
					t.Errorf("%d told, in store %+v", told.Load(), o)
				}
				cancel()
				<-ended
			})
		})
	}
}

func TestOtherObjectsAreWatchedOnWhereAWatchEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watches := make(chan *watch.FakeWatcher, 10)
		from := make(chan string, 10)
		informer := NewInformer(listing{&toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				from <- "listed"
				return &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
			},
			WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w := watch.NewFake()
				from <- o.ResourceVersion
				watches <- w
				return w, nil
			},
		}}, &coordinationv1.Lease{}, 0, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); informer.RunWithContext(ctx) }()
		w := <-watches
		w.Modify(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", ResourceVersion: "8"}})
		w.Stop()
		<-watches
		for _, want := range []string{"listed", "7", "8"} {
			if got := <-from; got != want {
				t.Errorf("asked from %s, want %s", got, want)
			}
		}
		cancel()
		<-ended
	})
}
