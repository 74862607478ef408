package admission

import (
	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// object is what is read of a Kubernetes object: the fields that a verdict may rest on, under their exact names.
type object struct {
	rules      *judgedKind
	apiVersion string
	kind       string
	meta       metadata
	// template is the metadata of the template, for kinds that have one.
	template metadata
	pod      podSpec
	// volume is for a PersistentVolume, pod for all others.
	volume persistentVolume
}

// podMeta is the metadata that the pods of the object have: its own, or its template's.
func (obj *object) podMeta() *metadata {
	if obj.rules.isTemplate() {
		return &obj.template
	}
	if !obj.rules.holdsPods() {
		return &metadata{}
	}
	return &obj.meta
}

type metadata struct {
	name         string
	generateName string
	namespace    string
	uid          string
	labels       map[string]string
	annotations  map[string]string
}

// readMetadata reads an ObjectMeta.
func readMetadata(r *jsonscan.Reader) (m metadata) {
	r.Members(
		jsonscan.Text("name", &m.name),
		jsonscan.Text("generateName", &m.generateName),
		jsonscan.Text("namespace", &m.namespace),
		jsonscan.Text("uid", &m.uid),
		jsonscan.Value("labels", func() { m.labels = readStrings(r) }),
		jsonscan.Value("annotations", func() { m.annotations = readStrings(r) }),
	)
	return m
}

func readStrings(r *jsonscan.Reader) map[string]string {
	m := map[string]string{}
	for o := r.Object(); o.Next(); {
		if r.Take(memberWeight + len(o.Key())); r.Err() != nil {
			break
		}
		key := string(o.Key())
		if _, ok := m[key]; ok {
			r.Failf("duplicate key %.80q", key)
		}
		m[key] = r.String()
	}
	return m
}
