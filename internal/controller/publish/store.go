package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrConflict says that an object is not any more as it was read.
var ErrConflict = errors.New("it was changed by somebody else")

// Store keeps one bundle for each pool.
type Store interface {
	// Get returns the zero Stored if there is none. It never returns less than a Put that has ended has left.
	Get(ctx context.Context, pool string) (Stored, error)
	// Put replaces what was read, or makes it if its Version is empty. It returns ErrConflict if it has changed since.
	Put(ctx context.Context, pool string, s Stored) error
}

// Stored is what is kept for a pool.
type Stored struct {
	Raw []byte
	// Revision is the bundle's, for people to see. It is not believed.
	Revision uint64
	// Version is the resourceVersion.
	Version string
}

// Names in a ConfigMap.
const (
	namePrefix = "pipeguard-bundle-"
	// File is the key of the bundle, and so its name where the ConfigMap is mounted.
	File = "bundle.tar.gz"

	labelPool          = "pipeguard.dev/node-pool"
	annotationRevision = "pipeguard.dev/bundle-revision"
)

// owner is whom the API server notes for what is written.
const owner = client.FieldOwner("pipeguard-bundles")

// ConfigMapName is the name of the ConfigMap of a pool.
func ConfigMapName(pool string) string { return namePrefix + pool }

// ConfigMaps is the Store of a cluster. It reads past every cache.
type ConfigMaps struct {
	namespace string
	client    client.Client
}

// NewConfigMaps makes connections, but does not use them yet.
func NewConfigMaps(config *rest.Config, namespace string) (*ConfigMaps, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("bundles in ConfigMaps: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil) // every cluster serves them: there is nothing to discover
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("bundles in ConfigMaps: %w", err)
	}
	return &ConfigMaps{namespace, c}, nil
}

// Get implements Store.
func (c *ConfigMaps) Get(ctx context.Context, pool string) (Stored, error) {
	o, err := c.read(ctx, pool)
	if err != nil || o == nil {
		return Stored{}, err
	}
	revision, err := strconv.ParseUint(o.Annotations[annotationRevision], 10, 64)
	if err != nil {
		revision = 0 // for people only
	}
	return Stored{Raw: o.BinaryData[File], Revision: revision, Version: o.ResourceVersion}, nil
}

func (c *ConfigMaps) read(ctx context.Context, pool string) (*corev1.ConfigMap, error) {
	var o corev1.ConfigMap
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: ConfigMapName(pool)}, &o)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", ConfigMapName(pool), err)
	}
	return &o, nil
}

// Put implements Store. Labels and annotations of others stay; data of others does not.
func (c *ConfigMaps) Put(ctx context.Context, pool string, s Stored) error {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: ConfigMapName(pool)}}
	if s.Version != "" {
		now, err := c.read(ctx, pool)
		if err != nil {
			return err
		}
		if now == nil || now.ResourceVersion != s.Version {
			return ErrConflict
		}
		o = now
	}
	o.Labels, o.Annotations = added(o.Labels, map[string]string{
		labelPool: pool, "app.kubernetes.io/name": "pipeguard", "app.kubernetes.io/component": "bundle",
	}), added(o.Annotations, map[string]string{annotationRevision: strconv.FormatUint(s.Revision, 10)})
	o.Data, o.BinaryData = nil, map[string][]byte{File: s.Raw}
	var err error
	if s.Version == "" {
		err = c.client.Create(ctx, o, owner)
	} else {
		err = c.client.Update(ctx, o, owner)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), s.Version != "" && apierrors.IsNotFound(err):
		return fmt.Errorf("ConfigMap %s: %w", ConfigMapName(pool), ErrConflict)
	case err != nil:
		return fmt.Errorf("ConfigMap %s: %w", ConfigMapName(pool), err)
	}
	return nil
}

func added(to, more map[string]string) map[string]string {
	out := maps.Clone(to)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
