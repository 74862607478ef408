package scan

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// mirrorAnnotation marks the object by which a static pod of a node is seen in the API.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// head is what the scan itself reads of an object.
type head struct {
	apiVersion, kind string
	namespace, name  string
	uid, version     string
	labels           map[string]string
	isMirror         bool
	controller       string // as Kind/name
}

// readHead reads raw, an object as the API server lists it. One that is too deep to be judged has a head like any other, and the report says so; of the whole
// list it must not be the end.
func readHead(raw []byte) (head, error) {
	var h head
	r := jsonscan.NewReader(raw)
	r.AllowDepth()
	r.Members(jsonscan.Text("apiVersion", &h.apiVersion), jsonscan.Text("kind", &h.kind), jsonscan.Value("metadata", func() { h.readMetadata(r) }))
	r.End()
	if err := r.Err(); err != nil {
		return head{}, fmt.Errorf("read an object of a list: %w", err)
	}
	if h.name == "" || h.uid == "" || h.version == "" {
		return head{}, fmt.Errorf("read an object of a list: it has no name, uid or resourceVersion")
	}
	return h, nil
}

func (h *head) readMetadata(r *jsonscan.Reader) {
	r.Members(
		jsonscan.Text("name", &h.name),
		jsonscan.Text("namespace", &h.namespace),
		jsonscan.Text("uid", &h.uid),
		jsonscan.Text("resourceVersion", &h.version),
		jsonscan.Value("labels", func() {
			h.labels = map[string]string{}
			for l := r.Object(); l.Next(); {
				key := string(l.Key())
				h.labels[key] = r.String()
			}
		}),
		jsonscan.Value("annotations", func() { r.Members(jsonscan.Value(mirrorAnnotation, func() { h.isMirror = true; r.Skip() })) }),
		jsonscan.Value("ownerReferences", func() {
			for a := r.Array(); a.Next(); {
				if controller := readController(r); controller != "" {
					h.controller = controller
				}
			}
		}),
	)
}

// readController returns an owner as Kind/name if it is the object's controller, else "".
func readController(r *jsonscan.Reader) string {
	var kind, name string
	var isController bool
	r.Members(jsonscan.Text("kind", &kind), jsonscan.Text("name", &name), jsonscan.Value("controller", func() { isController, _ = r.Bool() }))
	if !isController {
		return ""
	}
	return kind + "/" + name
}

// typed appends raw to buffer with its apiVersion and kind, which a list gives once for all of its objects.
func (h *head) typed(buffer, raw []byte, k kind) []byte {
	if h.apiVersion != "" || h.kind != "" {
		return append(buffer, raw...)
	}
	rest := bytes.TrimLeft(raw[bytes.IndexByte(raw, '{')+1:], " \t\r\n")
	apiVersion, _ := json.Marshal(k.apiVersion()) // a string can be encoded
	name, _ := json.Marshal(k.gvk.Kind)
	buffer = append(buffer, `{"apiVersion":`...)
	buffer = append(buffer, apiVersion...)
	buffer = append(buffer, `,"kind":`...)
	buffer = append(buffer, name...)
	buffer = append(buffer, ',') // the object has metadata: readHead saw to it
	return append(buffer, rest...)
}
