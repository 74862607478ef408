package keepfloor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// manager is the field manager of what is written.
const manager = client.FieldOwner("pipeguard-floor")

// change is what was done to an object.
type change string

const (
	unchanged change = ""
	removed   change = "removed"
	altered   change = "changed"
)

// Objects are the objects of a floor in a cluster. They are read where they are kept, and from no copy: that is once a minute.
type Objects struct {
	client    client.WithWatch
	name      string // of the floor
	ownerName string // of the ClusterRole that owns it
}

// NewObjects makes connections, but does not use them yet. The floor is owned by the ClusterRole of the process, so that it goes with
// the installation: a webhook configuration is what people delete to go on without the webhook, which is when the floor is for.
func NewObjects(config *rest.Config, name, owner string) (*Objects, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(admissionv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("objects of the floor: %w", err)
	}
	// Three kinds that every cluster serves: there is nothing to discover.
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		mapper.Add(admissionv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	config = rest.CopyConfig(config)
	config.Timeout = 0 // that of the Lease's renewals, which ends watches; requests have their own
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("objects of the floor: %w", err)
	}
	return &Objects{client: direct, name: name, ownerName: owner}, nil
}

// requestTime bounds a look at an object with its writing: an API server takes seconds for a large floor, for it compiles every expression.
const requestTime = 30 * time.Second

// errNoOwner keeps a floor from being put back while the installation is being removed: it would stay behind, with nobody to keep it.
var errNoOwner = errors.New("this ClusterRole is not there, or is being removed: without it, the floor would outlast the installation")

// owner is the reference to the owner.
func (o *Objects) owner(ctx context.Context) ([]metav1.OwnerReference, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var c rbacv1.ClusterRole
	err := o.client.Get(ctx, client.ObjectKey{Name: o.ownerName}, &c)
	switch {
	case apierrors.IsNotFound(err), err == nil && c.DeletionTimestamp != nil:
		return nil, fmt.Errorf("%s: %w", o.ownerName, errNoOwner)
	case err != nil:
		return nil, fmt.Errorf("read the floor's owner: %w", err)
	}
	return []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: c.Name, UID: c.UID}}, nil
}

// put makes the object in the cluster what it should be, whatever was there.
func (o *Objects) put(ctx context.Context, want floor.Object) (change, error) {
	fail := func(err error) (change, error) {
		return unchanged, fmt.Errorf("write the floor's %s %s: %w", want.GetObjectKind().GroupVersionKind().Kind, want.GetName(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	live := floor.EmptyLike(want)
	err := o.client.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		body, err := json.Marshal(want)
		if err != nil {
			return fail(err)
		}
		live.SetName(want.GetName())
		if err := o.client.Patch(ctx, live, client.RawPatch(types.ApplyPatchType, body), manager, client.ForceOwnership); err != nil {
			return fail(err)
		}
		return removed, nil
	case err != nil:
		return fail(err)
	case isAs(live, want):
		return unchanged, nil
	}
	want.SetResourceVersion(live.GetResourceVersion())
	if err := o.client.Update(ctx, want, manager); err != nil {
		return fail(err)
	}
	return altered, nil
}

// isAs compares what decides, and what says whose it is. Others may add labels and annotations.
func isAs(live, want floor.Object) bool {
	return live.GetDeletionTimestamp() == nil && floor.SameSpec(live, want) &&
		live.GetAnnotations()[floor.RevisionAnnotation] == want.GetAnnotations()[floor.RevisionAnnotation] &&
		equality.Semantic.DeepDerivative(want.GetLabels(), live.GetLabels()) && equality.Semantic.DeepEqual(want.GetOwnerReferences(), live.GetOwnerReferences())
}

// remove deletes an object of the floor. One without its labels is somebody else's.
func (o *Objects) remove(ctx context.Context, object floor.Object, labels map[string]string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := o.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) || err == nil && !equality.Semantic.DeepDerivative(labels, object.GetLabels()) {
		return false, nil
	}
	if err == nil {
		err = client.IgnoreNotFound(o.client.Delete(ctx, object))
	}
	if err != nil {
		return false, fmt.Errorf("remove the floor's %s: %w", object.GetName(), err)
	}
	return true, nil
}

// watch calls changed after each change of one of the objects, until ctx is done, and failed when it begins to be refused. It asks for one name at a time: these are all that the process may read.
func (o *Objects) watch(ctx context.Context, changed func(), failed func(error)) {
	var group sync.WaitGroup
	var failing atomic.Bool
	for _, name := range floor.Names(o.name) {
		for _, list := range []client.ObjectList{&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{}} {
			group.Go(func() {
				for ctx.Err() == nil {
					if err := o.follow(ctx, name, list, changed); failing.Swap(err != nil) != (err != nil) && err != nil && ctx.Err() == nil {
						failed(err)
					}
					periodic.Sleep(ctx, look/10)
				}
			})
		}
	}
	group.Wait()
}

// follow watches until the API server ends it, which it does every few minutes. What is missed between two is found by the next look.
func (o *Objects) follow(ctx context.Context, name string, list client.ObjectList, changed func()) error {
	w, err := o.client.Watch(ctx, list, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name)})
	if err != nil {
		return fmt.Errorf("watch the floor's %s: %w", name, err)
	}
	defer w.Stop()
	for range w.ResultChan() {
		changed()
	}
	return nil
}
