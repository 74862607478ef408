package report

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/harness"
)

// fakeAPI is an API server that keeps GuardedNodes, and is as strict about them as a real one.
type fakeAPI struct {
	t      *testing.T
	server *httptest.Server
	dir    string // with credentials

	mu      sync.Mutex // guards the fields below
	objects map[string]*v1alpha1.GuardedNode
	version int
	asked   []string         // METHOD PATH
	fail    map[string][]int // codes to answer with first, by method
	before  func(method string)
}

const goodToken = "header.payload.signature"

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{t: t, objects: map[string]*v1alpha1.GuardedNode{}, fail: map[string][]int{}, dir: t.TempDir()}
	f.server = httptest.NewTLSServer(f)
	t.Cleanup(f.server.Close)
	f.file("ca.crt", harness.CertificatePEM(f.server.Certificate()))
	f.file("token", goodToken+"\n")
	return f
}

func (f *fakeAPI) file(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, collection))
	if f.before != nil {
		f.before(r.Method)
	}
	answer := func(code int, v any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	status := func(code int) {
		answer(code, map[string]any{"kind": "Status", "message": "because of " + strconv.Itoa(code)})
	}
	if r.Header.Get("Authorization") != "Bearer "+goodToken {
		status(http.StatusUnauthorized)
		return
	}
	if codes := f.fail[r.Method]; len(codes) > 0 {
		f.fail[r.Method] = codes[1:]
		status(codes[0])
		return
	}
	name, isOne := strings.CutPrefix(r.URL.Path, collection+"/")
	stored := f.objects[name]
	if r.Method == http.MethodGet {
		if stored == nil {
			status(http.StatusNotFound)
			return
		}
		answer(http.StatusOK, stored)
		return
	}
	var given v1alpha1.GuardedNode
	text, _ := io.ReadAll(r.Body)
	if err := yaml.UnmarshalStrict(text, &given); err != nil || given.Kind != kind || given.APIVersion != apiVersion || r.URL.Query().Get("fieldManager") == "" {
		f.t.Errorf("%s: %v\n%s", r.Method, err, text)
		status(http.StatusBadRequest)
		return
	}
	switch {
	case r.Method == http.MethodPost && !isOne && f.objects[given.Name] != nil:
		status(http.StatusConflict)
		return
	case r.Method == http.MethodPut && stored == nil:
		status(http.StatusNotFound)
		return
	case r.Method == http.MethodPut && stored.ResourceVersion != given.ResourceVersion:
		status(http.StatusConflict)
		return
	}
	f.store(&given)
	code := http.StatusOK
	if r.Method == http.MethodPost {
		code = http.StatusCreated
	}
	answer(code, &given)
}

// store is what somebody else does, too.
func (f *fakeAPI) store(o *v1alpha1.GuardedNode) {
	f.version++
	o.ResourceVersion = strconv.Itoa(f.version)
	f.objects[o.Name] = o
}
