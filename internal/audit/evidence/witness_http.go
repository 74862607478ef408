package evidence

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// AddCheckpointPath is where a witness takes checkpoints, below its submission prefix.
const AddCheckpointPath = "/add-checkpoint"

// sizeType is the content type of the size that a witness expects. https://c2sp.org/tlog-witness
const sizeType = "text/x.tlog.size"

// clockType is the content type of the witness's time, with 403 and in RFC 3339, if the time of a checkpoint is too far from it. The protocol
// has no type for that; other clients treat it like any refusal.
const clockType = "text/x.pipeguard.time"

// ServeHTTP answers add-checkpoint. Requests need no authentication: what a log did not sign is refused.
func (w *Witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		out.Header().Set("Allow", http.MethodPost)
		http.Error(out, "POST a checkpoint", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, maxRequest))
	if err != nil {
		http.Error(out, "the request cannot be read, or is too long", http.StatusBadRequest)
		return
	}
	lines, err := w.cosign(r.Context(), body)
	var a answer
	switch {
	case err == nil:
		out.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = out.Write(lines) // the client may have disconnected
	case errors.As(err, &a) && a.status == http.StatusConflict:
		out.Header().Set("Content-Type", sizeType)
		out.WriteHeader(a.status)
		_, _ = io.WriteString(out, strconv.FormatUint(a.size, 10)+"\n")
	case errors.As(err, &a) && !a.clock.IsZero():
		out.Header().Set("Content-Type", clockType)
		out.WriteHeader(a.status)
		_, _ = io.WriteString(out, a.clock.UTC().Format(time.RFC3339)+"\n")
	case errors.As(err, &a):
		http.Error(out, a.text, a.status)
	default: // internal errors are not shown to strangers
		http.Error(out, "the witness cannot answer now", http.StatusServiceUnavailable)
	}
}
