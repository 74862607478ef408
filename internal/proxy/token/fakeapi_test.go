package token

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pipeguard/pipeguard/test/harness"
)

// apiServer answers reviews over HTTPS as a kube-apiserver does. Tests replace what it answers.
type apiServer struct {
	*httptest.Server
	keys *keys

	mu      sync.Mutex // guards the fields below
	asked   map[string]int
	access  []accessReview
	answer  func(w http.ResponseWriter, r *http.Request, usual []byte)
	revoked map[string]bool
	roles   map[string]bool // user, pipe and verb, with spaces between
	serial  *big.Int        // of the client certificate that is known, if it goes by certificates
}

const proxyToken = "proxy.own.token"

func startAPI(t testing.TB) *apiServer {
	t.Helper()
	k, err := parseKeys(clusterKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	a := &apiServer{keys: k, asked: map[string]int{}, revoked: map[string]bool{}, roles: map[string]bool{}}
	a.Server = httptest.NewUnstartedServer(a)
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if !a.knows(r) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	var usual []byte
	switch r.URL.Path {
	case tokenReviewPath:
		usual = a.tokenReview(body)
	case accessReviewPath:
		usual = a.accessReview(body)
	default:
		http.NotFound(w, r)
		return
	}
	a.mu.Lock()
	answer := a.answer
	a.mu.Unlock()
	if answer != nil {
		answer(w, r, usual)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(usual)
}

func (a *apiServer) knows(r *http.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.serial != nil {
		return len(r.TLS.PeerCertificates) == 1 && r.TLS.PeerCertificates[0].SerialNumber.Cmp(a.serial) == 0
	}
	return r.Header.Get("Authorization") == "Bearer "+proxyToken
}

// tokenReview is the review of a real API server: the token comes back with the answer.
func (a *apiServer) tokenReview(body []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[tokenReviewKind]++
	var review tokenReview
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&review); err != nil || review.Kind != tokenReviewKind || len(review.Spec.Audiences) != 1 {
		return []byte(`{}`)
	}
	t, refusal := parse(Secret(review.Spec.Token))
	if refusal == nil {
		refusal = a.keys.verify(t)
	}
	if refusal != nil || a.revoked[review.Spec.Token] {
		review.Status.Error = "[invalid bearer token, service account token has been invalidated]"
	} else {
		id := t.claims.identity()
		review.Status = tokenReviewStatus{
			Authenticated: true, Audiences: review.Spec.Audiences,
			User: userInfo{
				Username: id.Username(), UID: "sa-1", Groups: []string{"system:serviceaccounts"},
				Extra: map[string][]string{extraPodName: {id.PodName}, extraPodUID: {id.PodUID}, extraNode: {id.Node}},
			},
		}
	}
	text, _ := json.Marshal(struct {
		tokenReview
		Metadata fields `json:"metadata"`
	}{review, fields{"creationTimestamp": nil}})
	return text
}

func (a *apiServer) accessReview(body []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[accessReviewKind]++
	var q accessReview
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&q); err != nil || q.Kind != accessReviewKind {
		return []byte(`{}`)
	}
	a.access = append(a.access, q)
	r := q.Spec.ResourceAttributes
	allowed := r.Group == "pipeguard.dev" && r.Resource == "pipes" && a.roles[q.Spec.User+" "+r.Name+" "+r.Verb]
	text, _ := json.Marshal(fields{"kind": q.Kind, "apiVersion": q.APIVersion, "spec": q.Spec, "status": fields{"allowed": allowed}})
	return text
}

func (a *apiServer) questions(kind string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[kind]
}

func (a *apiServer) answers(f func(w http.ResponseWriter, r *http.Request, usual []byte)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

// away is an API server that cannot answer.
func away(w http.ResponseWriter, _ *http.Request, _ []byte) {
	http.Error(w, "etcd is away", http.StatusInternalServerError)
}

// says answers with the usual review, changed.
func says(change func(review fields, status fields)) func(http.ResponseWriter, *http.Request, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, usual []byte) {
		var review fields
		if err := json.Unmarshal(usual, &review); err != nil {
			panic(err)
		}
		status, _ := review["status"].(fields)
		change(review, status)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	}
}

// config returns one that reaches the server.
func (a *apiServer) config(t testing.TB) Config {
	t.Helper()
	dir := t.TempDir()
	ca, own := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	writeFile(t, ca, []byte(harness.CertificatePEM(a.Certificate())))
	writeFile(t, own, []byte(proxyToken+"\n"))
	return Config{
		Method: ByReview, Audience: ourAudience, Node: ourNode, Issuer: ourIssuer,
		API: API{Server: a.URL, CAFile: ca, TokenFile: own},
	}
}

func online(t testing.TB, c *clock, a *apiServer) *Verifier {
	t.Helper()
	v, err := New(a.config(t), Metrics{})
	if err != nil {
		t.Fatal(err)
	}
	return v.withClock(c)
}
