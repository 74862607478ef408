package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// The label by which the Scanner knows its own reports, its value, and the name of a report's first part.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "pipeguard"
)

// address names a report. The namespace of a ClusterPipeReport is "".
type address struct{ namespace, name string }

func (a address) kind() kind {
	if a.namespace == "" {
		return clusterReportKind()
	}
	return reportKind()
}

func (a address) String() string { return a.kind().gvk.Kind + " " + a.namespace + "/" + a.name }

// existing is a report that is there.
type existing struct {
	uid, version string
	isOurs       bool
}

// reports collects the reports that are there, by their metadata.
type reports struct {
	kind    kind
	pending map[address]existing
	found   map[address]existing
}

func (r *reports) restart() { r.found = map[address]existing{} }

func (r *reports) page() { r.pending = map[address]existing{} }

func (r *reports) add(raw []byte) error {
	h, err := readHead(raw)
	if err != nil {
		return err
	}
	if err := belongs(&h, r.kind); err != nil {
		return err
	}
	if isPart(h.name) {
		r.pending[address{h.namespace, h.name}] = existing{h.uid, h.version, h.labels[managedByLabel] == managedBy}
	}
	return nil
}

func (r *reports) commit() { maps.Copy(r.found, r.pending) }

// store reads and writes reports. A ClusterPipeReport has the shape of a PipeReport, so that one Go type does for both.
type store struct{ client rest.Interface }

func (s *store) get(ctx context.Context, a address) (*v1alpha1.PipeReport, error) {
	raw, err := answer(s.client.Get().AbsPath(a.kind().path(a.namespace), a.name).Do(ctx))
	if err != nil {
		return nil, err
	}
	var r v1alpha1.PipeReport
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("decode %s: %w", a, err)
	}
	return &r, nil
}

func (s *store) create(ctx context.Context, a address, r v1alpha1.Report) (version string, err error) {
	meta := metav1.ObjectMeta{Namespace: a.namespace, Name: a.name, Labels: map[string]string{managedByLabel: managedBy}}
	return write(ctx, a, s.client.Post().AbsPath(a.kind().path(a.namespace)), meta, r)
}

// update replaces old, which the store has read: the API server refuses if it was written since.
func (s *store) update(ctx context.Context, a address, old *v1alpha1.PipeReport, r v1alpha1.Report) (version string, err error) {
	return write(ctx, a, s.client.Put().AbsPath(a.kind().path(a.namespace), a.name), old.ObjectMeta, r)
}

// write sends a report, and returns the resourceVersion of the answer.
func write(ctx context.Context, a address, to *rest.Request, meta metav1.ObjectMeta, r v1alpha1.Report) (version string, err error) {
	kind := metav1.TypeMeta{APIVersion: a.kind().apiVersion(), Kind: a.kind().gvk.Kind}
	body, err := json.Marshal(&v1alpha1.PipeReport{TypeMeta: kind, ObjectMeta: meta, Report: r})
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", a, err)
	}
	raw, err := answer(withBody(to, body).Do(ctx))
	if err != nil {
		return "", err
	}
	h, err := readHead(raw)
	return h.version, err
}

// delete removes a report as it was found, and no later one.
func (s *store) delete(ctx context.Context, a address, found existing) error {
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: new(types.UID(found.uid)), ResourceVersion: &found.version},
	})
	if err != nil {
		return fmt.Errorf("encode options: %w", err)
	}
	return withBody(s.client.Delete().AbsPath(a.kind().path(a.namespace), a.name), body).Do(ctx).Error()
}

func withBody(r *rest.Request, body []byte) *rest.Request {
	return r.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body)
}

// answer is the body of an answer. Only Error reads the Status in which the API server says why it refused.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}
