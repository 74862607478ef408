package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
	"github.com/pipeguard/pipeguard/test/harness"
)

// audience is the name that tokens are made for here.
const audience = "pipeguard"

type object = map[string]any

// cluster is an API server that reviews tokens until it goes away.
type cluster struct {
	api *httptest.Server
	dir string
	pod string // the token of the pod
}

// startCluster begins an API server that accepts the token of one pod. Its files are for this process alone.
func startCluster(of caller.Caller, dir string) (*cluster, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil { // the one of a node that was killed is still there
		return nil, err
	}
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review(of)) // whoever has gone needs no answer
	}))
	c := &cluster{api: api, dir: dir}
	var err error
	if c.pod, err = tokenOf(of); err != nil {
		return nil, errors.Join(err, c.close())
	}
	authority := []byte(harness.CertificatePEM(api.Certificate()))
	if err := errors.Join(os.WriteFile(c.file("ca.crt"), authority, 0o600), os.WriteFile(c.file("token"), []byte("proxy.own.token"), 0o600)); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// goAway ends the API server: what it said last has to do.
func (c *cluster) goAway() { c.api.Close() }

func (c *cluster) close() error {
	c.api.Close()
	return os.RemoveAll(c.dir)
}

// guard looks at tokens as a configuration would have it, but asks about each call anew.
func (c *cluster) guard() (token.Guard, error) {
	v, err := token.New(token.Config{
		Method: token.ByReview, Audience: audience, Node: nodeName, AllowFor: 1, DenyFor: 1,
		API: token.API{Server: c.api.URL, CAFile: c.file("ca.crt"), TokenFile: c.file("token")},
	}, token.Metrics{})
	if err != nil {
		return token.Guard{}, err
	}
	return v.Guard("smb-v1", token.IfPresent)
}

// review is how an API server accepts a token.
func review(of caller.Caller) object {
	return object{
		"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
		"status": object{"authenticated": true, "audiences": []string{audience}, "user": object{
			"username": username(of), "extra": object{
				"authentication.kubernetes.io/pod-name":  []string{of.Pod.Name},
				"authentication.kubernetes.io/pod-uid":   []string{of.Pod.UID},
				"authentication.kubernetes.io/node-name": []string{nodeName},
			},
		}},
	}
}

func username(of caller.Caller) string {
	return "system:serviceaccount:" + of.Pod.Namespace + ":" + of.Pod.ServiceAccount
}

// tokenOf is a token of a pod. Its signature is the API server's business.
func tokenOf(of caller.Caller) (string, error) {
	now := time.Now()
	text := ""
	for _, part := range []object{
		{"alg": "RS256", "kid": "cluster"},
		{
			"iss": "https://kubernetes.default.svc.cluster.local", "sub": username(of), "aud": []string{audience}, "jti": "c0ffee00-1d6b-4f4a-9c0e-5a5b3a1f2e04",
			"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
			"kubernetes.io": object{
				"namespace": of.Pod.Namespace, "serviceaccount": object{"name": of.Pod.ServiceAccount},
				"pod": object{"name": of.Pod.Name, "uid": of.Pod.UID}, "node": object{"name": nodeName},
			},
		},
	} {
		doc, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		text += base64.RawURLEncoding.EncodeToString(doc) + "."
	}
	return text + base64.RawURLEncoding.EncodeToString([]byte(rand.Text())), nil
}
