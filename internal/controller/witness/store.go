package witness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// Names in a ConfigMap.
const (
	namePrefix = "pipeguard-witness-"
	// keyCheckpoint holds the signed note, as verification takes it.
	keyCheckpoint = "checkpoint"
	keyOrigin     = "origin"
	// keyPinned holds verifier keys that were trusted on first use, or that an operator put there, one a line.
	keyPinned = "keys"

	// What people read; nobody believes it.
	annotationRecords = "pipeguard.dev/audit-records"
	annotationAt      = "pipeguard.dev/cosigned-at"
)

const (
	// maxOrigin is the longest name that a verifier key has, in bytes.
	maxOrigin = 512
	// maxCheckpoint and maxPinned bound what is written for a log, in bytes: etcd keeps it for every log.
	maxCheckpoint = 32 << 10
	maxPinned     = 16 << 10
)

// owner is whom the API server notes for what is written.
const owner = client.FieldOwner("pipeguard-witness")

// ErrMemory means that what is remembered of a log is not what a witness has written.
var ErrMemory = errors.New("it does not hold what a witness writes")

// ConfigMapName is the name of the ConfigMap of a log. Origins may hold what no name may, and the chart makes the same name of them.
func ConfigMapName(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return namePrefix + hex.EncodeToString(sum[:20])
}

// Memory keeps an Entry for each log.
type Memory interface {
	// Read returns the zero Entry if there is none. It never returns less than a Write that has ended has left.
	Read(ctx context.Context, origin string) (Entry, error)
	// Write replaces what was read, or makes it if its Version is empty. It returns evidence.ErrChanged if it has changed since.
	Write(ctx context.Context, origin string, e Entry) error
}

// Entry is what is remembered of a log.
type Entry struct {
	// Checkpoint is the one that was cosigned last, nil if nothing is remembered.
	Checkpoint []byte
	// Pinned are verifier keys of the log, one a line; empty if none were pinned.
	Pinned string
	// Version is the resourceVersion.
	Version string
}

// ConfigMaps is the Memory of a cluster. It reads past every cache.
type ConfigMaps struct {
	namespace string
	client    client.Client
}

var _ Memory = (*ConfigMaps)(nil)

// NewConfigMaps makes connections, but does not use them yet.
func NewConfigMaps(config *rest.Config, namespace string) (*ConfigMaps, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("memory of the witness: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil) // every cluster serves them: there is nothing to discover
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("memory of the witness: %w", err)
	}
	return &ConfigMaps{namespace, c}, nil
}

// Read implements Memory.
func (c *ConfigMaps) Read(ctx context.Context, origin string) (Entry, error) {
	o, err := c.get(ctx, origin)
	if err != nil || o == nil {
		return Entry{}, err
	}
	e := Entry{Checkpoint: []byte(o.Data[keyCheckpoint]), Pinned: o.Data[keyPinned], Version: o.ResourceVersion}
	// Each is made with a checkpoint. One without was emptied, and is no new log: for that the operator deletes it.
	if len(e.Checkpoint) == 0 || o.Data[keyOrigin] != origin || len(e.Pinned) > maxPinned || len(e.Checkpoint) > maxCheckpoint {
		return Entry{}, fmt.Errorf("ConfigMap %s: %w", o.Name, ErrMemory)
	}
	return e, nil
}

func (c *ConfigMaps) get(ctx context.Context, origin string) (*corev1.ConfigMap, error) {
	name := ConfigMapName(origin)
	var o corev1.ConfigMap
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, &o)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	return &o, nil
}

// Write implements Memory. Labels and annotations of others stay; data of others does not.
func (c *ConfigMaps) Write(ctx context.Context, origin string, e Entry) error {
	name := ConfigMapName(origin)
	if len(origin) > maxOrigin || len(e.Checkpoint) > maxCheckpoint || len(e.Pinned) > maxPinned {
		return fmt.Errorf("ConfigMap %s: too much to remember of one log", name)
	}
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	if e.Version != "" {
		now, err := c.get(ctx, origin)
		if err != nil {
			return err
		}
		if now == nil || now.ResourceVersion != e.Version {
			return evidence.ErrChanged
		}
		o = now
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	maps.Copy(o.Labels, map[string]string{"app.kubernetes.io/name": "pipeguard", "app.kubernetes.io/component": "witness"})
	if head, err := evidence.Inspect(e.Checkpoint); err == nil {
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[annotationRecords], o.Annotations[annotationAt] = strconv.FormatUint(head.Size, 10), time.Now().UTC().Format(time.RFC3339)
	}
	o.BinaryData, o.Data = nil, map[string]string{keyOrigin: origin, keyCheckpoint: string(e.Checkpoint)}
	if e.Pinned != "" {
		o.Data[keyPinned] = e.Pinned
	}
	var err error
	if e.Version == "" {
		err = c.client.Create(ctx, o, owner)
	} else {
		err = c.client.Update(ctx, o, owner)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), e.Version != "" && apierrors.IsNotFound(err):
		return evidence.ErrChanged
	case err != nil:
		return fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	return nil
}
