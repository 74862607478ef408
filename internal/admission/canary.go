package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// canaryNamespace is not a valid name of a namespace, so that no parameters and no policy can allow it.
const canaryNamespace = "-pipeguard-canary-"

// NeverAllowedPath is a host path that no parameters and no policy can permit: the directory of all pipes. An object with it must be refused wherever the guard is enforced.
const NeverAllowedPath = pipeRoot

// APICanaryName is the name of the PodTemplate that APICanary returns.
const APICanaryName = "pipeguard-canary"

// ErrNoPolicy means that nothing decides yet: everything is refused.
var ErrNoPolicy = errors.New("no policy is active")

// Canary sends reviews that the active policies must refuse through ServeHTTP, from the bytes of the request to the bytes
// of the answer, and returns an error unless each was refused by a rule. A refusal for want of a decision does
// not count: it shows that nothing is judged. Before there is a policy it sends none and returns ErrNoPolicy.
func (r *Reviewer) Canary(ctx context.Context) error {
	for {
		snapshot, ok := r.o.Engine.Active()
		if !ok {
			return ErrNoPolicy
		}
		scope := scopeOf(snapshot)
		if scope == nil {
			return errNoScope
		}
		err := r.sendCanaries(ctx, scope)
		if now, _ := r.o.Engine.Active(); err == nil || now == snapshot {
			return err
		}
		// The policies were replaced in between: the canaries were of pipes that need not be guarded any longer.
	}
}

func (r *Reviewer) sendCanaries(ctx context.Context, scope *Scope) error {
	for _, c := range canaries(scope) {
		if err := r.sendCanary(ctx, c); err != nil {
			return fmt.Errorf("canary %q in a %s: %w", c.path, c.kind.Kind, err)
		}
	}
	return nil
}

// canary is an object that must be refused.
type canary struct {
	path string
	sample
}

// canaries are what every policy refuses. Where each guarded pipe is governed by a PipePolicy that lets it pass, only paths that
// are never allowed are left.
func canaries(scope *Scope) []canary {
	var paths []string
	if scope.canary != "" {
		paths = []string{pipeRoot + scope.canary, otherSpelling(scope.canary)}
	}
	paths = append(paths, pipeRoot)
	var out []canary
	for _, sampleAt := range []func(name, path string) sample{samplePod, sampleDeployment, sampleVolume} {
		for _, path := range paths {
			out = append(out, canary{path, sampleAt("canary", path)})
		}
	}
	return out
}

// APICanary is a PodTemplate that every policy refuses, whatever its parameters, for a dry run through the API server. It runs
// nothing, and no part of Kubernetes makes pods of it.
func APICanary(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: sampleTemplate(APICanaryName, namespace, pipeRoot).object}
}

func (r *Reviewer) sendCanary(ctx context.Context, c canary) error {
	request := map[string]any{
		"uid":       "pipeguard-canary",
		"operation": "CREATE",
		"kind":      c.kind,
		"namespace": canaryNamespace,
		"object":    c.object,
	}
	body, err := json.Marshal(map[string]any{"apiVersion": reviewType.APIVersion, "kind": reviewType.Kind, "request": request})
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(WithoutTrace(ctx), http.MethodPost, "/", bytes.NewReader(body))
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

// recorder is the ResponseWriter of a request that never left the process.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }
