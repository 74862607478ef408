package witness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
)

// Names in the ConfigMap of a log.
const (
	namePrefix = "pipeguard-witness-"
	keyOrigin  = "origin"
	// keyPinned holds verifier keys that were trusted on first use, or that an operator put there, one a line.
	keyPinned = "keys"
	// keyFirst holds a signed note, the first that was cosigned since the ConfigMap was made or taken over. Those after it are shared.
	keyFirst = "first-checkpoint"
	// keyAlone holds the note that was cosigned last, where an earlier release wrote it. That release takes a ConfigMap without it for damaged,
	// and cosigns nothing: while both run, no log gets cosignatures for two histories.
	keyAlone = "checkpoint"

	// For people to read; the witness does not trust them.
	annotationRecords = "pipeguard.dev/audit-records"
	annotationAt      = "pipeguard.dev/cosigned-at"
)

const (
	// maxOrigin is the longest name that a verifier key has, in bytes.
	maxOrigin = 512
	// maxCheckpoint and maxPinned bound what a log's own ConfigMap holds, in bytes.
	maxCheckpoint = 32 << 10
	maxPinned     = 16 << 10
)

// ConfigMapName is the name of the ConfigMap of a log. Origins may hold what no name may, and the chart makes the same name of them.
func ConfigMapName(origin string) string {
	return namePrefix + hash(origin)
}

func hash(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return hex.EncodeToString(sum[:20])
}

// own is what the ConfigMap of a log holds; the zero own if there is none.
type own struct {
	version    string // resourceVersion
	checkpoint []byte
	pinned     string
	isShared   bool // later checkpoints are kept together with those of other logs
}

// digest names the checkpoint, for lines that follow it.
func (o own) digest() string {
	sum := sha256.Sum256(o.checkpoint)
	return hex.EncodeToString(sum[:])
}

func readOwn(ctx context.Context, store configmaps.Store, origin string) (own, error) {
	o, err := store.Read(ctx, ConfigMapName(origin))
	if err != nil || o == nil {
		return own{}, err
	}
	first, isShared := o.Data[keyFirst]
	alone, isAlone := o.Data[keyAlone]
	out := own{version: o.ResourceVersion, checkpoint: []byte(first + alone), pinned: o.Data[keyPinned], isShared: isShared}
	// Each is made with a checkpoint. One without was emptied, and is no new log: for that the operator deletes it.
	if isShared == isAlone || len(out.checkpoint) == 0 || o.Data[keyOrigin] != origin || len(out.pinned) > maxPinned || len(out.checkpoint) > maxCheckpoint {
		return own{}, fmt.Errorf("ConfigMap %s: %w", o.Name, ErrMemory)
	}
	return out, nil
}

// write replaces what was read, or makes it. It returns configmaps.ErrChanged if it has changed since.
func (o own) write(ctx context.Context, store configmaps.Store, origin string, e Entry) error {
	name := ConfigMapName(origin)
	if len(e.Checkpoint) > maxCheckpoint || len(e.Pinned) > maxPinned {
		return fmt.Errorf("ConfigMap %s: %w", name, errTooLong)
	}
	next := &corev1.ConfigMap{Data: map[string]string{keyOrigin: origin, keyFirst: string(e.Checkpoint)}}
	if e.Pinned != "" {
		next.Data[keyPinned] = e.Pinned
	}
	if head, err := evidence.Inspect(e.Checkpoint); err == nil {
		next.Annotations = map[string]string{annotationRecords: strconv.FormatUint(head.Size, 10), annotationAt: time.Now().UTC().Format(time.RFC3339)}
	}
	return store.Write(ctx, name, o.version, next)
}
