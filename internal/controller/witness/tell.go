package witness

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// EventRecorder is what a Handler uses of the recorder of k8s.io/client-go/tools/events.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// cosigned records an answer with a cosignature. That a log is new is worth a line: a memory that was lost looks the same.
func (h *Handler) cosigned(a *attempt) {
	if a.isOld {
		h.metrics.repeated.Inc()
		return
	}
	if a.entry.Checkpoint != nil {
		h.metrics.cosigned.WithLabelValues("known").Inc()
		return
	}
	h.metrics.cosigned.WithLabelValues("new").Inc()
	h.o.Log.Info("audit log that nothing was remembered of", zap.String(logkeys.Name, a.origin))
}

// tell records an answer without a cosignature. A log that was changed gets lines and Events of its own; everything that needs no key of a log
// shares a few lines.
func (h *Handler) tell(ctx context.Context, a *attempt, why reason, body []byte) {
	if why == reasonKey && h.isOfNode(ctx, a, body) {
		why = reasonPin
	}
	h.metrics.refused.WithLabelValues(string(why)).Inc()
	note := a.note(why)
	fields := []zap.Field{zap.String(logkeys.Name, a.origin), zap.String(logkeys.Reason, string(why)), zap.String(logkeys.Note, note)}
	switch {
	case why.isChanged():
		if !h.loud.take(a.origin + " " + string(why)) {
			return
		}
		h.o.Log.Error("audit log was changed", fields...)
		h.event(a.origin, why, note)
	case why == reasonStore, why == reasonNoKey:
		if h.loud.take(string(why)) {
			h.o.Log.Error("witness cannot answer", append(fields, zap.Error(a.err))...)
		}
	case why == reasonSize:
		h.o.Log.Debug("checkpoint not cosigned", fields...)
	default:
		if h.loud.take(string(why)) { // a word of ours: strangers make no other
			h.o.Log.Warn("checkpoint not cosigned", fields...)
		}
	}
}

// isOfNode says whether a checkpoint, signed by no key that counts for its log, is signed by the one that its node names now.
func (h *Handler) isOfNode(ctx context.Context, a *attempt, body []byte) bool {
	if h.o.Reported == nil || some(a.given) || a.reported != "" {
		return false
	}
	_, checkpoint, _ := bytes.Cut(body, []byte("\n\n"))
	text, err := h.o.Reported(ctx, a.origin)
	if err != nil || text == "" {
		return false
	}
	keys, err := evidence.ParseKeys(text)
	if err != nil {
		return false
	}
	_, err = keys.Open(checkpoint)
	return err == nil
}

// note says what happened for people.
func (a *attempt) note(why reason) string {
	switch {
	case why == reasonPin:
		return fmt.Sprintf("The log is signed by the key that the node names now, and another key is pinned in the ConfigMap %s.", ConfigMapName(a.origin))
	case a.refusal == nil:
		return ""
	}
	cosigned, has := a.refusal.Last, a.refusal.Head
	switch why {
	case reasonTime:
		return fmt.Sprintf("It was signed at %s, which is more than %s from the webhook's clock: it is an old one that was sent again, or a clock is wrong.",
			a.refusal.SignedAt.Format(time.RFC3339), evidence.ClockTolerance)
	case reasonRollback:
		return fmt.Sprintf("%d records were cosigned, and the log now has %d: it was rolled back.", cosigned.Size, has.Size)
	case reasonLate:
		return fmt.Sprintf("%d records were cosigned, and this checkpoint of %d does not go on from them and is older.", cosigned.Size, has.Size)
	case reasonFork:
		return fmt.Sprintf("%d records were cosigned, and the log now has as many others.", cosigned.Size)
	}
	return fmt.Sprintf("%d records were cosigned, and no proof shows that they are among the %d that the log now has.", cosigned.Size, has.Size)
}

// event tells of a node; logs of others have no object to tell of.
func (h *Handler) event(origin string, why reason, note string) {
	node, ok := nodeOf(origin)
	if !ok || h.o.Events == nil {
		return
	}
	// The kubelet's own Events have the name for the UID, and kubectl describe looks for it.
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)}
	what := "AuditLogChanged"
	if why == reasonPin {
		what = "AuditKeyChanged"
	}
	h.o.Events.Eventf(about, nil, corev1.EventTypeWarning, what, "Witness", "%s", note)
}
