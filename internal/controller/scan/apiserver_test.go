package scan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// object is what the API server of the tests keeps, as JSON would have it.
type object map[string]any

func (o object) meta() map[string]any { return o["metadata"].(map[string]any) }

func (o object) text(key string) string { s, _ := o.meta()[key].(string); return s }

func (o object) labels() labels.Set {
	out := labels.Set{}
	given, _ := o.meta()["labels"].(map[string]any)
	for key, value := range given {
		out[key] = value.(string)
	}
	return out
}

func (o object) key() string { return o.text("namespace") + "/" + o.text("name") }

// apiServer speaks as much of the API as the scan uses: lists in pages, whole or as metadata, and reports with optimistic
// concurrency.
type apiServer struct {
	t testing.TB
	// fault may answer a request itself; it then returns true. It is called with the lock held.
	fault func(w http.ResponseWriter, r *http.Request) bool

	mu        sync.Mutex // guards what follows
	version   int
	kinds     map[string]map[string]object // by path of the kind without namespace, then by namespace/name
	snapshots map[string][]object          // what is left of lists, by continue token
	requests  []string
	listed    map[string]int // objects that lists gave, by path
}

func newAPIServer(t testing.TB) *apiServer {
	a := &apiServer{t: t, kinds: map[string]map[string]object{}, snapshots: map[string][]object{}, listed: map[string]int{}}
	a.namespace("default")
	return a
}

// config reaches the server without a network, so that tests with a clock of their own can use it.
func (a *apiServer) config() *rest.Config {
	return &rest.Config{Host: "http://api", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Result(), nil
	})}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// put stores an object of a kind, new or instead of the one of the same name.
func (a *apiServer) put(k kind, namespace, name string, change ...func(object)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := object{"metadata": map[string]any{"name": name, "uid": "uid-" + namespace + "-" + name}}
	if namespace != "" {
		o.meta()["namespace"] = namespace
	}
	for _, c := range change {
		c(o)
	}
	a.store(k.path(""), o)
}

func (a *apiServer) store(path string, o object) {
	a.version++
	o.meta()["resourceVersion"] = strconv.Itoa(a.version)
	if a.kinds[path] == nil {
		a.kinds[path] = map[string]object{}
	}
	a.kinds[path][o.key()] = o
}

func (a *apiServer) remove(k kind, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kinds[k.path("")], namespace+"/"+name)
}

func (a *apiServer) namespace(name string) { a.put(namespaceKind(), "", name) }

func namespaceKind() kind {
	return kind{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false}
}

// pod stores a pod with a label that markJudge understands.
func (a *apiServer) pod(namespace, name, mark string, change ...func(object)) {
	a.put(judgedKinds()[0], namespace, name, append([]func(object){marked(mark)}, change...)...)
}

func marked(mark string) func(object) {
	return func(o object) {
		if mark != "" {
			o.meta()["labels"] = map[string]any{"mark": mark}
		}
	}
}

// reports returns all reports, as text of address to object.
func (a *apiServer) reports() map[string]v1alpha1.PipeReport {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]v1alpha1.PipeReport{}
	for _, k := range []kind{reportKind(), clusterReportKind()} {
		for key, o := range a.kinds[k.path("")] {
			var r v1alpha1.PipeReport
			text, _ := json.Marshal(o)
			if err := json.Unmarshal(text, &r); err != nil {
				a.t.Error(err)
			}
			out[key] = r
		}
	}
	return out
}

// asked returns the requests since the last call, as "GET /path".
func (a *apiServer) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.requests
	a.requests = nil
	return r
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	view := ""
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		view = " metadata"
	}
	a.requests = append(a.requests, r.Method+" "+r.URL.Path+view)
	if a.fault != nil && a.fault(w, r) {
		return
	}
	path, namespace, name := split(r.URL.Path)
	switch {
	case r.Method == http.MethodGet && name == "":
		a.list(w, r, path, namespace, view != "")
	case r.Method == http.MethodPost:
		o := a.body(r)
		if _, ok := a.kinds[namespaceKind().path("")]["/"+namespace]; namespace != "" && !ok {
			writeStatus(w, 404, metav1.StatusReasonNotFound, &metav1.StatusDetails{Kind: "namespaces", Name: namespace})
			return
		}
		if _, ok := a.kinds[path][o.key()]; ok {
			writeStatus(w, 409, metav1.StatusReasonAlreadyExists, nil)
			return
		}
		o.meta()["uid"] = fmt.Sprintf("uid-%d", a.version)
		a.store(path, o)
		writeJSON(w, 201, o)
	default:
		a.one(w, r, path, namespace+"/"+name)
	}
}

// one serves requests to one object.
func (a *apiServer) one(w http.ResponseWriter, r *http.Request, path, key string) {
	old, ok := a.kinds[path][key]
	if !ok {
		writeStatus(w, 404, metav1.StatusReasonNotFound, nil)
		return
	}
	switch r.Method {
	case http.MethodGet:
		writeJSON(w, 200, old)
	case http.MethodPut:
		o := a.body(r)
		if o.text("resourceVersion") != old.text("resourceVersion") {
			writeStatus(w, 409, metav1.StatusReasonConflict, nil)
			return
		}
		a.store(path, o)
		writeJSON(w, 200, o)
	case http.MethodDelete:
		var options metav1.DeleteOptions
		if err := json.NewDecoder(r.Body).Decode(&options); err != nil || options.Preconditions == nil {
			writeStatus(w, 400, metav1.StatusReasonBadRequest, nil)
			return
		}
		if *options.Preconditions.ResourceVersion != old.text("resourceVersion") || string(*options.Preconditions.UID) != old.text("uid") {
			writeStatus(w, 409, metav1.StatusReasonConflict, nil)
			return
		}
		delete(a.kinds[path], key)
		writeStatus(w, 200, "", nil)
	}
}

func (a *apiServer) list(w http.ResponseWriter, r *http.Request, path, namespace string, metadata bool) {
	token := r.URL.Query().Get("continue")
	objects, ok := a.snapshots[token]
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		a.t.Error(err)
		return
	}
	if token == "" {
		for _, o := range a.kinds[path] {
			if (namespace == "" || o.text("namespace") == namespace) && selector.Matches(o.labels()) {
				objects = append(objects, o)
			}
		}
		slices.SortFunc(objects, func(a, b object) int { return cmp.Compare(a.key(), b.key()) })
	} else if !ok {
		writeStatus(w, 410, metav1.StatusReasonExpired, nil)
		return
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		a.t.Errorf("a list without limit: %s", r.URL)
	}
	list := map[string]any{"kind": "List", "apiVersion": "v1", "items": []object{}}
	page := objects[:min(limit, len(objects))]
	a.listed[path] += len(page)
	meta := map[string]any{"resourceVersion": strconv.Itoa(a.version)}
	if len(page) < len(objects) {
		a.version++
		next := fmt.Sprintf("token-%d", a.version)
		a.snapshots[next] = objects[len(page):]
		meta["continue"] = next
	}
	list["metadata"] = meta
	items := []any{}
	for _, o := range page {
		if metadata {
			o = object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
		}
		items = append(items, o)
	}
	list["items"] = items
	writeJSON(w, 200, list)
}

func (a *apiServer) body(r *http.Request) object {
	var o object
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		a.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	return o
}

// split takes the address of an object or a list apart. path is that of the kind in all namespaces.
func split(address string) (path, namespace, name string) {
	words := strings.Split(strings.TrimPrefix(address, "/"), "/")
	n := 2 // api, v1
	if words[0] == "apis" {
		n = 3
	}
	group, rest := words[:n], words[n:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	if len(rest) > 1 {
		name = rest[1]
	}
	return "/" + strings.Join(append(slices.Clone(group), rest[0]), "/"), namespace, name
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func writeStatus(w http.ResponseWriter, code int32, reason metav1.StatusReason, details *metav1.StatusDetails) {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Details: details, Message: string(reason),
	}
	if code < 300 {
		s.Status = metav1.StatusSuccess
	}
	writeJSON(w, int(code), s)
}
