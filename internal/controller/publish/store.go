package publish

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
)

// Store keeps one bundle for each pool.
type Store interface {
	// Get returns the zero Stored if there is none. It never returns less than a Put that has ended has left.
	Get(ctx context.Context, pool string) (Stored, error)
	// Put replaces what was read, or makes it if its Version is empty. It returns configmaps.ErrChanged if it has changed since.
	Put(ctx context.Context, pool string, s Stored) error
}

// Stored is what is kept for a pool.
type Stored struct {
	Raw []byte
	// Revision is the bundle's, for people who look at the store. It is written and not read.
	Revision uint64
	// Version is the resourceVersion.
	Version string
}

// Names in a ConfigMap.
const (
	namePrefix = "pipeguard-bundle-"
	// File is the key of the bundle, and so its name where the ConfigMap is mounted.
	File = "bundle.tar.gz"
)

// ConfigMapName is the name of the ConfigMap of a pool.
func ConfigMapName(pool string) string { return namePrefix + pool }

// ConfigMaps is the Store of a cluster. It reads past every cache.
type ConfigMaps struct{ store configmaps.Store }

// NewConfigMaps makes connections, but does not use them yet.
func NewConfigMaps(config *rest.Config, namespace string) (*ConfigMaps, error) {
	s, err := configmaps.New(config, namespace, "pipeguard-bundles", "bundle")
	if err != nil {
		return nil, fmt.Errorf("bundles in ConfigMaps: %w", err)
	}
	return &ConfigMaps{s}, nil
}

// Get implements Store.
func (c *ConfigMaps) Get(ctx context.Context, pool string) (Stored, error) {
	o, err := c.store.Read(ctx, ConfigMapName(pool))
	if err != nil || o == nil {
		return Stored{}, err
	}
	return Stored{Raw: o.BinaryData[File], Version: o.ResourceVersion}, nil
}

// Put implements Store.
func (c *ConfigMaps) Put(ctx context.Context, pool string, s Stored) error {
	o := &corev1.ConfigMap{BinaryData: map[string][]byte{File: s.Raw}}
	o.Labels = map[string]string{v1alpha1.LabelNodePool: pool}
	o.Annotations = map[string]string{v1alpha1.AnnotationBundleRevision: strconv.FormatUint(s.Revision, 10)}
	return c.store.Write(ctx, ConfigMapName(pool), s.Version, o)
}
