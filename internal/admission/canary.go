package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/pipepath"
)

// canaryNamespace is not a valid name of a namespace, so that no parameters can allow it.
const canaryNamespace = "-pipeguard-canary-"

type canaryKey struct{}

// isCanary says whether a request is the process's own. Only the context can say so, never the request:
// a canary leaves no record, and nobody else may send one.
func isCanary(ctx context.Context) bool { return ctx.Value(canaryKey{}) != nil }

// ErrNoPolicy means that nothing decides yet: everything is refused.
var ErrNoPolicy = errors.New("no policy is active")

// Canary sends reviews that every policy must refuse through ServeHTTP, from the bytes of the request to the bytes of
// the answer, and returns an error unless each was refused by a rule. A refusal for want of a decision does
// not count: it shows that nothing is judged. Before there is a policy it sends none and returns ErrNoPolicy.
func (r *Reviewer) Canary(ctx context.Context) error {
	if _, ok := r.engine.Active(); !ok {
		return ErrNoPolicy
	}
	for {
		guard := r.guard.Load()
		err := r.sendCanaries(ctx, guardedName(guard))
		if err == nil || r.guard.Load() == guard {
			return err
		}
		// The guarded pipes were replaced in between: the canaries were of pipes that are guarded no longer.
	}
}

func (r *Reviewer) sendCanaries(ctx context.Context, pipe string) error {
	for _, path := range []string{
		`\\.\pipe\` + pipe,
		`//?/GLOBALROOT/Device/NamedPipe/` + strings.ToUpper(pipe),
		`\\.\pipe\`,
	} {
		if err := r.sendCanary(ctx, path); err != nil {
			return fmt.Errorf("canary %q: %w", path, err)
		}
	}
	return nil
}

func (r *Reviewer) sendCanary(ctx context.Context, path string) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": reviewType.APIVersion,
		"kind":       reviewType.Kind,
		"request": map[string]any{
			"uid":       "pipeguard-canary",
			"operation": "CREATE",
			"kind":      map[string]any{"group": "", "version": "v1", "kind": "Pod"},
			"namespace": canaryNamespace,
			"object":    pod("canary", path),
		},
	})
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(context.WithValue(ctx, canaryKey{}, true), http.MethodPost, "/", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	r.ServeHTTP(w, req)
	if w.status != http.StatusOK {
		return fmt.Errorf("answered with status %d: %s", w.status, w.body.Bytes())
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.body.Bytes(), &review); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	switch a := review.Response; {
	case a == nil || a.UID != "pipeguard-canary":
		return errors.New("the answer is not to this request")
	case a.Allowed:
		return errors.New("it was admitted")
	case a.AuditAnnotations[annotationCodes] == CodeFailure:
		return fmt.Errorf("it was refused without a decision: %s", a.Result.Message)
	}
	return nil
}

// guardedName is the name of a pipe that guard must match.
func guardedName(guard *pipepath.Guard) string {
	pattern := guard.Patterns()[0]
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return prefix + "-filesystem-v1"
	}
	return pattern
}

// pod is a Pod with one container that mounts path from the host.
func pod(name, path string) map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"containers": []any{map[string]any{
				"name":         name,
				"image":        "example.com/" + name,
				"volumeMounts": []any{map[string]any{"name": "pipe", "mountPath": `\\.\pipe\mounted`}},
			}},
			"volumes": []any{map[string]any{"name": "pipe", "hostPath": map[string]any{"path": path}}},
		},
	}
}

// recorder is the ResponseWriter of a request that never left the process.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }
