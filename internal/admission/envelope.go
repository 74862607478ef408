package admission

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// maxUID bounds the uid, which is repeated in answers, records and logs. The API server's has 36 bytes.
const maxUID = 256

// envelope is an AdmissionReview that was read.
type envelope struct {
	// request has the fields that a verdict can rest on. The objects in it share the memory of the text.
	request admissionv1.AdmissionRequest
	// apiVersion and kind are the object's own.
	apiVersion, kind string
	// mayMatter is false if no key in the object could lead to something that is judged.
	mayMatter bool
	// namesOnly ends the reading at the first object.
	namesOnly bool
}

// DecodeReview reads an AdmissionReview of admission.k8s.io/v1. Keys count in their exact case only, as for the API
// server, and a duplicate key is refused, so that what is judged is what will be stored. The objects of the request
// share the memory of body, and fields that no verdict rests on (options, requestKind and the like) are left out.
func DecodeReview(body []byte) (*admissionv1.AdmissionRequest, error) {
	e, err := decodeReview(body, jsonscan.Allow(heavyReview))
	if err != nil {
		return nil, err
	}
	return &e.request, nil
}

// beginningOf reads a review that is incomplete or too heavy to be read as a whole, up to the first object, before which the API server writes
// all names. It returns nil if there is no uid to answer to.
func beginningOf(body []byte) *envelope {
	e := &envelope{namesOnly: true}
	if apiVersion, kind, _ := e.read(body, jsonscan.Allow(lightReview)); apiVersion != reviewType.APIVersion || kind != reviewType.Kind || e.request.UID == "" || len(e.request.UID) > maxUID {
		return nil
	}
	return e
}

// tenantOf is the sender of the review in a body, as far as its beginning tells.
func tenantOf(body []byte) turns.Sender {
	e := beginningOf(body)
	if e == nil {
		e = &envelope{}
	}
	return senderOf(e.request.UserInfo.Username, e.request.Namespace)
}

func decodeReview(body []byte, a *jsonscan.Allowance) (*envelope, error) {
	e := &envelope{}
	apiVersion, kind, err := e.read(body, a)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the AdmissionReview: %w", err)
	case apiVersion != reviewType.APIVersion || kind != reviewType.Kind:
		return nil, fmt.Errorf("the document is %s, not an admission.k8s.io/v1 AdmissionReview", quote(apiVersion+" "+kind, maxName))
	case e.request.UID == "":
		return nil, errors.New("the AdmissionReview has no request.uid")
	case len(e.request.UID) > maxUID:
		return nil, fmt.Errorf("the AdmissionReview's request.uid has more than %d bytes", maxUID)
	}
	return e, nil
}

// read reads a review, up to the first fault.
func (e *envelope) read(body []byte, a *jsonscan.Allowance) (apiVersion, kind string, err error) {
	r := jsonscan.NewReader(body).Within(a)
	r.Members(
		jsonscan.Text("apiVersion", &apiVersion),
		jsonscan.Text("kind", &kind),
		jsonscan.Value("request", func() { e.readRequest(r) }),
	)
	r.End()
	return apiVersion, kind, r.Err()
}

func (e *envelope) readRequest(r *jsonscan.Reader) {
	q := &e.request
	unlessNamesOnly := func(read func()) func() {
		if e.namesOnly {
			return func() { r.Failf("the objects are not read") }
		}
		return read
	}
	r.Members(
		jsonscan.Value("uid", func() { q.UID = types.UID(r.String()) }),
		jsonscan.Value("kind", func() { q.Kind = readKind(r) }),
		jsonscan.Text("subResource", &q.SubResource),
		jsonscan.Text("name", &q.Name),
		jsonscan.Text("namespace", &q.Namespace),
		jsonscan.Value("operation", func() { q.Operation = admissionv1.Operation(r.String()) }),
		jsonscan.Value("userInfo", func() { q.UserInfo.Username, q.UserInfo.Groups = readUser(r) }),
		jsonscan.Value("object", unlessNamesOnly(func() { e.readHead(r) })),
		jsonscan.Value("oldObject", unlessNamesOnly(func() { q.OldObject.Raw = r.Raw() })),
	)
}

// readHead takes the object as raw text, and learns on the way what the object calls itself and whether it may matter.
func (e *envelope) readHead(r *jsonscan.Reader) {
	r.Mark(mayMatter)
	e.request.Object.Raw = r.RawObject(func(o *jsonscan.Object) {
		o.OneOf(jsonscan.Text("apiVersion", &e.apiVersion), jsonscan.Text("kind", &e.kind))
	})
	e.mayMatter = r.Marked()
	r.Mark(nil)
}

func readKind(r *jsonscan.Reader) (k metav1.GroupVersionKind) {
	r.Members(jsonscan.Text("group", &k.Group), jsonscan.Text("version", &k.Version), jsonscan.Text("kind", &k.Kind))
	return k
}

func readUser(r *jsonscan.Reader) (name string, groups []string) {
	r.Members(
		jsonscan.Text("username", &name),
		jsonscan.Value("groups", func() {
			for range entries(r) {
				r.Take(groupWeight)
				groups = append(groups, r.String())
			}
		}),
	)
	return name, groups
}
