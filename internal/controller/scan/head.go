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
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "apiVersion":
			h.apiVersion = r.String()
		case "kind":
			h.kind = r.String()
		case "metadata":
			h.readMetadata(r)
		default:
			r.Skip()
		}
	}
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
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "name":
			h.name = r.String()
		case "namespace":
			h.namespace = r.String()
		case "uid":
			h.uid = r.String()
		case "resourceVersion":
			h.version = r.String()
		case "labels":
			h.labels = map[string]string{}
			for l := r.Object(); l.Next(); {
				key := string(l.Key())
				h.labels[key] = r.String()
			}
		case "annotations":
			for a := r.Object(); a.Next(); {
				h.isMirror = h.isMirror || string(a.Key()) == mirrorAnnotation
				r.Skip()
			}
		case "ownerReferences":
			for a := r.Array(); a.Next(); {
				if controller := readController(r); controller != "" {
					h.controller = controller
				}
			}
		default:
			r.Skip()
		}
	}
}

// readController returns an owner as Kind/name if it is the object's controller, else "".
func readController(r *jsonscan.Reader) string {
	var kind, name string
	var isController bool
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "kind":
			kind = r.String()
		case "name":
			name = r.String()
		case "controller":
			isController, _ = r.Bool()
		default:
			r.Skip()
		}
	}
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
