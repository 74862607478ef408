package witness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
)

// Names in a ConfigMap.
const (
	namePrefix = "pipeguard-witness-"
	// keyCheckpoint holds the signed note, as verification takes it.
	keyCheckpoint = "checkpoint"
	keyOrigin     = "origin"
	// keyPinned holds verifier keys that were trusted on first use, or that an operator put there, one a line.
	keyPinned = "keys"

	// For people to read; the witness does not trust them.
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
type ConfigMaps struct{ store configmaps.Store }

var _ Memory = (*ConfigMaps)(nil)

// NewConfigMaps makes connections, but does not use them yet.
func NewConfigMaps(config *rest.Config, namespace string) (*ConfigMaps, error) {
	s, err := configmaps.New(config, namespace, "pipeguard-witness", "witness")
	if err != nil {
		return nil, fmt.Errorf("memory of the witness: %w", err)
	}
	return &ConfigMaps{s}, nil
}

// Read implements Memory.
func (c *ConfigMaps) Read(ctx context.Context, origin string) (Entry, error) {
	o, err := c.store.Read(ctx, ConfigMapName(origin))
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

// Write implements Memory.
func (c *ConfigMaps) Write(ctx context.Context, origin string, e Entry) error {
	name := ConfigMapName(origin)
	if len(origin) > maxOrigin || len(e.Checkpoint) > maxCheckpoint || len(e.Pinned) > maxPinned {
		return fmt.Errorf("ConfigMap %s: too much to remember of one log", name)
	}
	o := &corev1.ConfigMap{Data: map[string]string{keyOrigin: origin, keyCheckpoint: string(e.Checkpoint)}}
	if e.Pinned != "" {
		o.Data[keyPinned] = e.Pinned
	}
	if head, err := evidence.Inspect(e.Checkpoint); err == nil {
		o.Annotations = map[string]string{annotationRecords: strconv.FormatUint(head.Size, 10), annotationAt: time.Now().UTC().Format(time.RFC3339)}
	}
	err := c.store.Write(ctx, name, e.Version, o)
	if errors.Is(err, configmaps.ErrChanged) {
		return evidence.ErrChanged
	}
	return err
}
