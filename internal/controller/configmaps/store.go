// Package configmaps stores the webhook's persistent state in ConfigMaps, one for each entry.
// It trusts the API server, and nothing of what a ConfigMap holds: others can write there too.
package configmaps

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrChanged means that a ConfigMap was changed since it was read.
var ErrChanged = errors.New("it was changed since it was read")

// Store reads and writes the ConfigMaps of a namespace, past every cache.
type Store struct {
	Namespace string
	Client    client.Client
	// Owner is the field manager of what is written.
	Owner client.FieldOwner
	// Component is what labels say that the ConfigMaps belong to.
	Component string
}

// New makes connections, but does not use them yet.
func New(config *rest.Config, namespace string, owner client.FieldOwner, component string) (Store, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return Store{}, err
	}
	mapper := meta.NewDefaultRESTMapper(nil) // every cluster serves them: there is nothing to discover
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	return Store{namespace, c, owner, component}, err
}

// Read returns nil if there is none of the name. It never returns less than a Write that has ended has left.
func (s Store) Read(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	var o corev1.ConfigMap
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &o)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	return &o, nil
}

// Write replaces what was read, or makes it if its resourceVersion is empty. It returns ErrChanged if it has changed since. Labels and annotations of
// others stay; data of others does not.
func (s Store) Write(ctx context.Context, name, version string, o *corev1.ConfigMap) error {
	labels := map[string]string{"app.kubernetes.io/name": "pipeguard", "app.kubernetes.io/component": s.Component}
	o.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: added(labels, o.Labels), Annotations: o.Annotations}
	if version == "" {
		return s.written(name, s.Client.Create(ctx, o, s.Owner))
	}
	now, err := s.Read(ctx, name)
	if err != nil {
		return err
	}
	if now == nil || now.ResourceVersion != version {
		return ErrChanged
	}
	now.Labels, now.Annotations = added(now.Labels, o.Labels), added(now.Annotations, o.Annotations)
	now.Data, now.BinaryData = o.Data, o.BinaryData
	return s.Update(ctx, now)
}

// Update stores what Read returned, with the caller's changes. It returns ErrChanged if it has changed since.
func (s Store) Update(ctx context.Context, o *corev1.ConfigMap) error {
	name := o.Name
	err := s.Client.Update(ctx, o, s.Owner)
	if apierrors.IsNotFound(err) {
		err = ErrChanged
	}
	return s.written(name, err)
}

func (s Store) written(name string, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = ErrChanged
	}
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	return nil
}

func added(to, more map[string]string) map[string]string {
	if to == nil {
		return more
	}
	maps.Copy(to, more)
	return to
}
