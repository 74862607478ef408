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
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "name":
			o.Once(0)
			m.name = r.String()
		case "generateName":
			o.Once(1)
			m.generateName = r.String()
		case "namespace":
			o.Once(2)
			m.namespace = r.String()
		case "uid":
			o.Once(3)
			m.uid = r.String()
		case "labels":
			o.Once(4)
			m.labels = readStrings(r)
		case "annotations":
			o.Once(5)
			m.annotations = readStrings(r)
		default:
			r.Skip()
		}
	}
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
