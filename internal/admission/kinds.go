package admission

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// reader takes an object of one kind from r and says where in it the pod spec is.
type reader func(r *jsonscan.Reader) object

// readerOf returns the reader of a kind. It has a row for each kind that is judged: a kind that embeds a pod
// in a template takes a row whose reader descends to the template and sets podField accordingly.
func readerOf(kind metav1.GroupVersionKind) (reader, bool) {
	switch kind {
	case metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}:
		return readPod, true
	}
	return nil, false
}

func readPod(r *jsonscan.Reader) object {
	obj := object{podField: "spec"}
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "apiVersion":
			o.Once(0)
			obj.apiVersion = r.String()
		case "kind":
			o.Once(1)
			obj.kind = r.String()
		case "metadata":
			o.Once(2)
			obj.meta = readMetadata(r)
		case "spec":
			o.Once(3)
			obj.pod = readPodSpec(r)
		default:
			r.Skip()
		}
	}
	if obj.pod.serviceAccount == "" { // an object without spec
		obj.pod.serviceAccount = "default"
	}
	return obj
}

// readObject reads raw as an object of the kind that the API server announced. An object of another kind is an error.
func readObject(raw []byte, kind metav1.GroupVersionKind) (object, error) {
	read, ok := readerOf(kind)
	if !ok {
		return object{}, fmt.Errorf("objects of kind %s are not judged here", quote(kindName(kind), maxName))
	}
	r := jsonscan.NewReader(raw)
	if r.Null() {
		return object{}, fmt.Errorf("the object is null")
	}
	obj := read(r)
	r.End()
	if err := r.Err(); err != nil {
		return object{}, fmt.Errorf("read the object: %w", err)
	}
	if err := sameKind(obj.apiVersion, obj.kind, kind); err != nil {
		return object{}, err
	}
	return obj, nil
}

// sameKind holds an object's own apiVersion and kind against the kind of the request.
func sameKind(apiVersion, kind string, want metav1.GroupVersionKind) error {
	wantVersion := want.Version
	if want.Group != "" {
		wantVersion = want.Group + "/" + want.Version
	}
	if apiVersion != wantVersion || kind != want.Kind {
		return fmt.Errorf("the request is about %s, its object is %s",
			quote(kindName(want), maxName), quote(apiVersion+" "+kind, maxName))
	}
	return nil
}

func kindName(k metav1.GroupVersionKind) string {
	if k.Group == "" {
		return k.Version + " " + k.Kind
	}
	return k.Group + "/" + k.Version + " " + k.Kind
}
