package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cluster signs the tokens of service accounts (RFC 7515; the claims are those of projected tokens).
type cluster struct {
	t   *testing.T
	key *ecdsa.PrivateKey
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return cluster{t, key}
}

func tokenPart(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwks is what the API server publishes.
func (c cluster) jwks() []byte {
	c.t.Helper()
	point, err := c.key.PublicKey.Bytes()
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"keys":[{"kty":"EC","kid":"k","use":"sig","alg":"ES256","crv":"P-256","x":%q,"y":%q}]}`, tokenPart(point[1:33]), tokenPart(point[33:]))
}

type claims = map[string]any

// token is that of a place on node win-1, for the audience pipeguard.
func (c cluster) token(p place, change ...func(claims, claims)) string {
	c.t.Helper()
	now := time.Now()
	bound := claims{
		"namespace": p.namespace, "serviceaccount": claims{"name": p.account, "uid": "s"},
		"pod": claims{"name": p.pod, "uid": p.uid}, "node": claims{"name": "win-1", "uid": "n"},
	}
	all := claims{
		"aud": []string{"pipeguard"}, "iss": "https://cluster.example", "sub": "system:serviceaccount:" + p.namespace + ":" + p.account, "jti": "1",
		"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "nbf": now.Unix(), "kubernetes.io": bound,
	}
	for _, how := range change {
		how(all, bound)
	}
	text, err := json.Marshal(all)
	if err != nil {
		c.t.Fatal(err)
	}
	signed := tokenPart([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + tokenPart(text)
	sum := sha256.Sum256([]byte(signed))
	var r, s *big.Int
	if r, s, err = ecdsa.Sign(rand.Reader, c.key, sum[:]); err != nil {
		c.t.Fatal(err)
	}
	return signed + "." + tokenPart(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// withTokens makes a node whose driver needs a token for what the rule allows.
func withTokens(t *testing.T, c cluster, mode string) *machine {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(keys, c.jwks(), 0o600); err != nil {
		t.Fatal(err)
	}
	n := newMachine(t, fmt.Sprintf("tokens:\n  verify: {method: keys, audience: pipeguard, node: win-1, issuer: %q, keys: %q}\n  pipes: {filesystem-v1: %s}\n", "https://cluster.example", keys, mode))
	text := strings.Replace(read(t, n.config), "container: driver}", "container: driver, token: true}", 1)
	if err := errors.Join(os.WriteFile(n.config, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestATokenIsOfUseToItsPodAlone(t *testing.T) {
	c, stranger := newCluster(t), newCluster(t)
	own := c.token(driverPlace)
	parts := strings.Split(own, ".")
	// Without a token that counts the rule does not hold, or the pipe is closed altogether.
	for mode, without := range map[string]string{"ifPresent": "PermissionDenied", "required": "Unauthenticated"} {
		n := withTokens(t, c, mode)
		pipe, log, _ := guarded(t, n)
		for i, a := range []struct {
			name, group, token, code string
			counts                   bool // the record says that it was the caller's own
		}{
			{"its own", driverPlace.id, own, "OK", true},
			{"none", driverPlace.id, "", without, false},
			{"stolen by a pod beside it", neighbour.id, own, "Unauthenticated", false},
			{"stolen by a process of the node", "", own, without, false},
			{"that of a pod beside it", driverPlace.id, c.token(neighbour), "Unauthenticated", false},
			{"that of the pod that had this name", driverPlace.id, c.token(sameNameLater, func(all, bound claims) {
				all["sub"], bound["serviceaccount"] = "system:serviceaccount:storage:csi-node", claims{"name": "csi-node", "uid": "s"}
			}), "Unauthenticated", false},
			{"that of the same pod on another node", driverPlace.id, c.token(driverPlace, func(_, bound claims) { bound["node"] = claims{"name": "win-2", "uid": "n"} }), "Unauthenticated", false},
			{"one for the API server", driverPlace.id, c.token(driverPlace, func(all, _ claims) { all["aud"] = []string{"https://cluster.example"} }), "Unauthenticated", false},
			{"one that has ended", driverPlace.id, c.token(driverPlace, func(all, _ claims) {
				all["exp"], all["iat"], all["nbf"] = time.Now().Add(-time.Hour).Unix(), time.Now().Add(-2*time.Hour).Unix(), time.Now().Add(-2*time.Hour).Unix()
			}), "Unauthenticated", false},
			{"one that a stranger signed", driverPlace.id, stranger.token(driverPlace), "Unauthenticated", false},
			{"one that nobody signed", driverPlace.id, tokenPart([]byte(`{"alg":"none","kid":"k"}`)) + "." + parts[1] + ".", "Unauthenticated", false},
			{"its own with other claims", driverPlace.id, parts[0] + "." + tokenPart([]byte(`{"sub":"system:serviceaccount:kube-system:admin"}`)) + "." + parts[2], "Unauthenticated", false},
			{"what is none", driverPlace.id, "x", "Unauthenticated", false},
			{"its own, twice", driverPlace.id, own + "\t" + own, "Unauthenticated", false},
		} {
			t.Run(mode+"/"+a.name, func(t *testing.T) {
				group := ""
				if a.group != "" {
					group = n.group(a.group)
				}
				who := newCaller(t, group)
				who.open(pipe)
				who.Say("token %s", a.token)
				if got := who.Hear(); got != "done" {
					t.Fatal(got)
				}
				about := under(fmt.Sprintf("%s-%d", mode, i))
				got := who.call(about)
				expect(t, got, a.code)
				if a.token != "" && a.token != "x" && strings.Contains(got, parts[2]) {
					t.Error("the answer holds the token")
				}
				if e := ended(t, log, about); e.Who.Token != a.counts || (a.code == "OK") != (e.IntentSeq != 0) {
					t.Errorf("recorded as %+v", e.Who)
				}
			})
		}
		if text := lines(t, log); strings.Contains(text, parts[2]) || strings.Contains(text, parts[1]) {
			t.Error("the records hold a token")
		}
	}
}

// The token is asked for with every call: one call's does not serve the next one on the same connection.
func TestATokenIsOneCalls(t *testing.T) {
	c := newCluster(t)
	n := withTokens(t, c, "ifPresent")
	pipe, _, _ := guarded(t, n)
	who := newCaller(t, n.group(driverPlace.id))
	who.open(pipe)
	for i, step := range []struct{ token, code string }{{"", "PermissionDenied"}, {c.token(driverPlace), "OK"}, {"", "PermissionDenied"}, {c.token(neighbour), "Unauthenticated"}, {c.token(driverPlace), "OK"}} {
		who.Say("token %s", step.token)
		who.Hear()
		expect(t, who.call(under(fmt.Sprintf("step-%d", i))), step.code)
	}
}
