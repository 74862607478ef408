package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// The label by which the Scanner knows its own reports, its value, and the name of a report's first part.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "pipeguard"
)

// address names a report. The namespace of one about objects without a namespace is "".
type address struct{ namespace, name string }

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

// store reads and writes the reports of one form.
type store struct {
	client rest.Interface
	form   form
}

// name says which report is meant.
func (s *store) name(a address) string {
	return s.form.kindOf(a.namespace).gvk.Kind + " " + a.namespace + "/" + a.name
}

func (s *store) path(a address) string { return s.form.kindOf(a.namespace).path(a.namespace) }

// get reads the metadata of a report and what it says.
func (s *store) get(ctx context.Context, a address) (metav1.ObjectMeta, document, error) {
	raw, err := answer(s.client.Get().AbsPath(s.path(a), a.name).Do(ctx))
	if err != nil {
		return metav1.ObjectMeta{}, nil, err
	}
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		return metav1.ObjectMeta{}, nil, fmt.Errorf("decode %s: %w", s.name(a), err)
	}
	d, err := s.form.decode(raw)
	if err != nil {
		return metav1.ObjectMeta{}, nil, fmt.Errorf("decode %s: %w", s.name(a), err)
	}
	return meta.ObjectMeta, d, nil
}

// create makes a report that belongs to owners.
func (s *store) create(ctx context.Context, a address, owners []metav1.OwnerReference, d document, at time.Time) (version string, err error) {
	meta := metav1.ObjectMeta{Namespace: a.namespace, Name: a.name, Labels: map[string]string{managedByLabel: managedBy}, OwnerReferences: owners}
	return s.write(ctx, a, s.client.Post().AbsPath(s.path(a)), meta, d, at)
}

// update replaces the report of this metadata, which the store has read: the API server refuses if it was written since.
func (s *store) update(ctx context.Context, a address, old metav1.ObjectMeta, d document, at time.Time) (version string, err error) {
	return s.write(ctx, a, s.client.Put().AbsPath(s.path(a), a.name), old, d, at)
}

// write sends a report, and returns the resourceVersion of the answer.
func (s *store) write(ctx context.Context, a address, to *rest.Request, meta metav1.ObjectMeta, d document, at time.Time) (version string, err error) {
	k := s.form.kindOf(a.namespace)
	body, err := json.Marshal(d.object(metav1.TypeMeta{APIVersion: k.apiVersion(), Kind: k.gvk.Kind}, meta, at))
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", s.name(a), err)
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
	return withBody(s.client.Delete().AbsPath(s.path(a), a.name), body).Do(ctx).Error()
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
