package publish

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// api is the part of an API server that keeps ConfigMaps, with its resource versions, conflicts and bound of 1 MiB.
type api struct {
	mu      sync.Mutex // guards what follows
	objects map[string]*corev1.ConfigMap
	version int
	writes  int
	before  func(method string) // called before each request, without the lock
	refuse  int                 // status of each answer; 0 answers
}

const mebibyte = 1 << 20

func newAPI(t *testing.T) (*api, *ConfigMaps) {
	t.Helper()
	a := &api{objects: map[string]*corev1.ConfigMap{}, before: func(string) {}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	store, err := NewConfigMaps(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "pipeguard-system")
	if err != nil {
		t.Fatal(err)
	}
	return a, store
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.before(r.Method)
	a.mu.Lock()
	defer a.mu.Unlock()
	name := path.Base(r.URL.Path)
	switch {
	case a.refuse != 0:
		status(w, a.refuse, metav1.StatusReasonForbidden)
	case r.Method == http.MethodGet && a.objects[name] == nil:
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodGet:
		answer(w, http.StatusOK, a.objects[name])
	case r.Method == http.MethodPost || r.Method == http.MethodPut:
		a.write(w, r, name)
	default:
		status(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
	}
}

func (a *api) write(w http.ResponseWriter, r *http.Request, name string) {
	var o corev1.ConfigMap
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	was, size := a.objects[o.Name], 0
	for key, value := range o.BinaryData {
		size += len(key) + len(value)
	}
	switch {
	case size > mebibyte:
		status(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case r.Method == http.MethodPost && was != nil:
		status(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case r.Method == http.MethodPut && was == nil:
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodPut && (name != o.Name || o.ResourceVersion != was.ResourceVersion):
		status(w, http.StatusConflict, metav1.StatusReasonConflict)
	default:
		a.put(&o)
		a.writes++
		answer(w, http.StatusOK, &o)
	}
}

func (a *api) put(o *corev1.ConfigMap) {
	a.version++
	o.ResourceVersion = strconv.Itoa(a.version)
	o.Kind, o.APIVersion = "ConfigMap", "v1"
	a.objects[o.Name] = o
}

// change does what anybody with the right to might.
func (a *api) change(name string, f func(*corev1.ConfigMap)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.objects[name].DeepCopy()
	f(o)
	a.put(o)
}

func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects, name)
}

func (a *api) get(name string) *corev1.ConfigMap {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[name].DeepCopy()
}

func (a *api) written() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, //nolint:gosec // three digits
	})
}
