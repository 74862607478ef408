package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

const (
	ourAudience = "pipeguard"
	ourIssuer   = "https://kubernetes.default.svc.cluster.local"
	ourNode     = "win-1"
)

// The keys of the cluster, and those of a stranger. Making RSA keys takes long, so all tests share them.
var (
	clusterRSA  = sync.OnceValue(newRSA)
	strangerRSA = sync.OnceValue(newRSA)
	clusterEC   = sync.OnceValue(newEC)
	strangerEC  = sync.OnceValue(newEC)
)

func newRSA() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func newEC() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

type fields = map[string]any

func b64(b []byte) string { return base64URL.EncodeToString(b) }

func rsaJWK(kid string, key *rsa.PublicKey) fields {
	return fields{"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes())}
}

func ecJWK(t testing.TB, kid string, key *ecdsa.PublicKey) fields {
	t.Helper()
	point, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return fields{"kty": "EC", "kid": kid, "use": "sig", "alg": "ES256", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])}
}

func clusterKeys(t testing.TB) []byte {
	t.Helper()
	return document(t, rsaJWK("rsa-1", &clusterRSA().PublicKey), ecJWK(t, "ec-1", &clusterEC().PublicKey))
}

func document(t testing.TB, keys ...fields) []byte {
	t.Helper()
	return marshal(t, fields{"keys": keys})
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// claimsAt are those of the caller's own token, in the API server's form.
func claimsAt(now time.Time) fields {
	return fields{
		"aud": []string{ourAudience}, "iss": ourIssuer, "sub": "system:serviceaccount:storage:driver", "jti": "4f1c",
		"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "nbf": now.Unix(),
		"kubernetes.io": fields{
			"namespace": "storage", "serviceaccount": fields{"name": "driver", "uid": "sa-1"},
			"pod": fields{"name": "driver-x7", "uid": "pod-1"}, "node": fields{"name": ourNode, "uid": "node-1"},
		},
	}
}

// sign makes a token as the API server does, whatever the header says.
func sign(t testing.TB, header fields, claims any, key crypto.Signer) string {
	t.Helper()
	return signText(t, marshal(t, header), marshal(t, claims), key)
}

func signText(t testing.TB, header, claims []byte, key crypto.Signer) string {
	t.Helper()
	text := b64(header) + "." + b64(claims)
	hash := sha256.Sum256([]byte(text))
	var signature []byte
	var err error
	switch key := key.(type) {
	case *rsa.PrivateKey:
		signature, err = rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, hash[:])
	case *ecdsa.PrivateKey:
		var r, s *big.Int
		if r, s, err = ecdsa.Sign(rand.Reader, key, hash[:]); err == nil {
			signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	default:
		signature = []byte("no signature")
	}
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(signature)
}

func rsaHeader() fields { return fields{"alg": "RS256", "kid": "rsa-1"} }
func ecHeader() fields  { return fields{"alg": "ES256", "kid": "ec-1"} }

// with returns claims with some changed; a dot leads into an object, and nil removes.
func with(claims fields, changes fields) fields {
	out := maps.Clone(claims)
	for path, value := range changes {
		at := out
		for {
			name, rest, deeper := strings.Cut(path, "/")
			if !deeper {
				break
			}
			inner, _ := at[name].(fields)
			at[name] = maps.Clone(inner)
			at, _ = at[name].(fields)
			path = rest
		}
		if at[path] = value; value == nil {
			delete(at, path)
		}
	}
	return out
}

func bearer(tokens ...string) metadata.MD {
	md := metadata.MD{}
	for _, t := range tokens {
		md.Append("authorization", "Bearer "+t)
	}
	return md
}

// driver is the caller that the token of claimsAt was made for.
func driver() Facts {
	return Facts{
		Caller: caller.Caller{
			Process: caller.Process{PID: 412, Start: time.Unix(1337, 0)},
			Pod:     caller.Pod{Namespace: "storage", Name: "driver-x7", UID: "pod-1", ServiceAccount: "driver"},
		},
		Alive: func() error { return nil },
	}
}

// clock is what a verifier takes the time from.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (v *Verifier) withClock(c *clock) *Verifier {
	v.now, v.tokens.now, v.access.now = c.Now, c.Now, c.Now
	return v
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

// offline makes a verifier by keys, and returns the file that it reads.
func offline(t testing.TB, c *clock) (*Verifier, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jwks.json")
	writeFile(t, file, clusterKeys(t))
	v, err := New(Config{Method: ByKeys, Audience: ourAudience, Node: ourNode, Issuer: ourIssuer, Keys: file}, Metrics{})
	if err != nil {
		t.Fatal(err)
	}
	return v.withClock(c), file
}

func writeFile(t testing.TB, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func guard(t testing.TB, v *Verifier, mode Mode) Guard {
	t.Helper()
	g, err := v.Guard("disk-v1", mode)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// wantRefusal checks that a call is refused for a reason, with no identity, and that no text tells of the token.
func wantRefusal(t *testing.T, g Guard, md metadata.MD, caller Facts, reason Reason) {
	t.Helper()
	id, _, err := g.Check(t.Context(), md, caller)
	if err == nil {
		t.Fatalf("accepted as %+v, want a refusal for %q", id, reason)
	}
	if got := ReasonOf(err); got != reason {
		t.Errorf("refused for %q (%v), want %q", got, err, reason)
	}
	if id != (Identity{}) {
		t.Errorf("refused, but with the identity %+v", id)
	}
	for _, value := range md.Get("authorization") {
		for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ' ' || r == '.' }) {
			if len(part) > 8 && strings.Contains(err.Error(), part) {
				t.Errorf("the error quotes the token: %v", err)
			}
		}
	}
}

// wantDriver checks that a call is served as the driver's.
func wantDriver(t *testing.T, g Guard, md metadata.MD, caller Facts) Result {
	t.Helper()
	id, result, err := g.Check(t.Context(), md, caller)
	if err != nil {
		t.Fatal(err)
	}
	if id.Namespace != "storage" || id.ServiceAccount != "driver" || id.PodName != "driver-x7" || id.PodUID != "pod-1" || id.Node != ourNode || id.Expires.IsZero() {
		t.Errorf("got %+v, want the driver", id)
	}
	if !result.Present || result.Unbound {
		t.Errorf("got %+v, want a token that counts", result)
	}
	return result
}
