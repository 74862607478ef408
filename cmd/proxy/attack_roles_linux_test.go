package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/harness"
)

// apiServer answers what the cluster's roles allow, in the API's own types.
type apiServer struct {
	t *testing.T

	mu    sync.Mutex // guards the fields below
	away  bool
	roles []string // USER VERB PIPE
	asked []string
}

func (a *apiServer) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var review authorizationv1.SubjectAccessReview
	switch err := json.NewDecoder(r.Body).Decode(&review); {
	case a.away:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case err != nil || r.URL.Path != "/apis/authorization.k8s.io/v1/subjectaccessreviews" || r.Header.Get("Authorization") != "Bearer secret":
		a.t.Errorf("%s %s, %v", r.Method, r.URL.Path, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	about := review.Spec.ResourceAttributes
	if about.Group != "pipeguard.dev" || about.Resource != "pipes" {
		a.t.Errorf("asked about %+v", about)
	}
	question := review.Spec.User + " " + about.Verb + " " + about.Name
	a.asked = append(a.asked, question)
	review.Status.Allowed = slices.Contains(a.roles, question)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
}

// withRoles makes a node on which the cluster's roles may allow what the access list leaves out.
func withRoles(t *testing.T, c cluster, roles ...string) (*machine, *apiServer) {
	t.Helper()
	api := &apiServer{t: t, roles: roles}
	server := httptest.NewTLSServer(api)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca, token, keys := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token"), filepath.Join(dir, "jwks.json")
	text := []byte(harness.CertificatePEM(server.Certificate()))
	if err := errors.Join(os.WriteFile(ca, text, 0o600), os.WriteFile(token, []byte("secret"), 0o600), os.WriteFile(keys, c.jwks(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return newMachine(t, fmt.Sprintf(`tokens:
  verify: {method: keys, audience: pipeguard, node: win-1, issuer: %q, keys: %q, api: {server: %q, caFile: %q, tokenFile: %q}}
  roles: [filesystem-v1]
`, "https://cluster.example", keys, server.URL, ca, token)), api
}

func TestTheClustersRolesAllowWhatTheyNameAndNothingElse(t *testing.T) {
	const neighbours, drivers = "system:serviceaccount:team:default", "system:serviceaccount:storage:csi-node"
	for name, c := range map[string]struct {
		group, role, code string
		away              bool
		rule              string
	}{
		"a role for all methods":                {neighbour.id, neighbours + " connect filesystem-v1", "OK", false, "roles/connect"},
		"a role for the method":                 {neighbour.id, neighbours + " PathExists filesystem-v1", "OK", false, "roles/PathExists"},
		"no role":                               {neighbour.id, "", "PermissionDenied", false, ""},
		"a role of another account":             {neighbour.id, drivers + " connect filesystem-v1", "PermissionDenied", false, ""},
		"a role for another method":             {neighbour.id, neighbours + " Mkdir filesystem-v1", "PermissionDenied", false, ""},
		"a role for another pipe":               {neighbour.id, neighbours + " connect filesystem-v1beta1", "PermissionDenied", false, ""},
		"the API server is away":                {neighbour.id, neighbours + " connect filesystem-v1", "PermissionDenied", true, ""},
		"a process that is in no pod":           {"", "system:serviceaccount:: connect filesystem-v1", "PermissionDenied", false, ""},
		"the sidecar of one that has a role":    {sidecarPlace.id, drivers + " connect filesystem-v1", "OK", false, "roles/connect"}, // RBAC knows accounts, not containers
		"the driver, whom the list allows":      {driverPlace.id, "", "OK", false, "driver"},
		"the driver, while nobody can be asked": {driverPlace.id, "", "OK", true, "driver"},
	} {
		t.Run(name, func(t *testing.T) {
			n, api := withRoles(t, newCluster(t), c.role)
			api.set(func() { api.away = c.away })
			pipe, log, _ := guarded(t, n)
			group := ""
			if c.group != "" {
				group = n.group(c.group)
			}
			who := newCaller(t, group)
			who.open(pipe)
			expect(t, who.call(under("x")), c.code)
			d := ended(t, log, under("x")).Decision
			if d == nil || d.Rule != c.rule || (d.Effect == audit.EffectAllow) != (c.code == "OK") {
				t.Errorf("recorded as %+v", d)
			}
			api.set(func() {
				if c.rule == "driver" && len(api.asked) > 0 {
					t.Errorf("asked %q about what the list allows", api.asked)
				}
			})
		})
	}
}
