package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func TestKeysAcceptTheCallersOwnToken(t *testing.T) {
	c := newClock()
	v, _ := offline(t, c)
	own := claimsAt(c.Now())
	for name, text := range map[string]string{
		"signed with RSA":             sign(t, rsaHeader(), own, clusterRSA()),
		"signed with an elliptic key": sign(t, ecHeader(), own, clusterEC()),
		"with a type":                 sign(t, with(rsaHeader(), fields{"typ": "JWT"}), own, clusterRSA()),
		"one audience as a string":    sign(t, rsaHeader(), with(own, fields{"aud": ourAudience}), clusterRSA()),
		"for others too":              sign(t, rsaHeader(), with(own, fields{"aud": []string{"vault", ourAudience}}), clusterRSA()),
		"with claims of later days":   sign(t, rsaHeader(), with(own, fields{"kubernetes.io/warnafter": 5, "new": []int{1}}), clusterRSA()),
		"from a clock a bit ahead":    sign(t, rsaHeader(), with(own, fields{"nbf": c.Now().Unix() + 9, "iat": c.Now().Unix() + 9}), clusterRSA()),
		"expired a moment ago":        sign(t, rsaHeader(), with(own, fields{"exp": c.Now().Unix() - 9, "iat": c.Now().Unix() - 99, "nbf": c.Now().Unix() - 99}), clusterRSA()),
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []Mode{IfPresent, Required} {
				if got := wantDriver(t, guard(t, v, mode), bearer(text), driver()); got.Method != ByKeys || got.ID != "JTI=4f1c" || got.Stale {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
	t.Run("with only the pod's uid known", func(t *testing.T) {
		wantDriver(t, guard(t, v, Required), bearer(sign(t, rsaHeader(), own, clusterRSA())), Facts{Caller: caller.Caller{Process: caller.Process{PID: 1}, Pod: caller.Pod{UID: "pod-1"}}})
	})
}

func TestKeysRefuse(t *testing.T) {
	c := newClock()
	v, _ := offline(t, c)
	now := c.Now()
	own := claimsAt(now)
	changed := func(changes fields) string { return sign(t, rsaHeader(), with(own, changes), clusterRSA()) }
	headed := func(changes fields) string { return sign(t, with(rsaHeader(), changes), own, clusterRSA()) }
	good := sign(t, rsaHeader(), own, clusterRSA())
	parts := strings.Split(good, ".")
	spki, err := x509.MarshalPKIXPublicKey(&clusterRSA().PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	hs256 := func(header fields, secret []byte) string {
		text := b64(marshal(t, header)) + "." + parts[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		return text + "." + b64(mac.Sum(nil))
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})

	for _, tt := range []struct {
		name   string
		token  string
		reason Reason
	}{
		{"signed by a stranger under the cluster's key name", sign(t, rsaHeader(), own, strangerRSA()), Unproven},
		{"signed by a stranger's elliptic key", sign(t, ecHeader(), own, strangerEC()), Unproven},
		{"claims exchanged under a signature", parts[0] + "." + strings.Split(changed(fields{"jti": "5"}), ".")[1] + "." + parts[2], Unproven},
		{"a signature of another token", parts[0] + "." + parts[1] + "." + strings.Split(changed(fields{"jti": "5"}), ".")[2], Unproven},
		{"a signature cut short", parts[0] + "." + parts[1] + "." + b64([]byte{1}), Unproven},
		{"an elliptic signature of zeros", b64(marshal(t, ecHeader())) + "." + parts[1] + "." + b64(make([]byte, 64)), Unproven},
		{"an unknown key", headed(fields{"kid": "rsa-9"}), Unproven},

		{"no algorithm", headed(fields{"alg": "none"}), Malformed},
		{"no algorithm and no signature", b64(marshal(t, fields{"alg": "none", "kid": "rsa-1"})) + "." + parts[1] + ".", Malformed},
		{"an algorithm in other letters", headed(fields{"alg": "rs256"}), Malformed},
		{"a shared secret made of the public key's PEM", hs256(fields{"alg": "HS256", "kid": "rsa-1"}, public), Malformed},
		{"a shared secret made of the public key, called RSA", hs256(rsaHeader(), spki), Unproven},
		{"an RSA key's name with an elliptic signature", sign(t, fields{"alg": "ES256", "kid": "rsa-1"}, own, clusterEC()), Unproven},
		{"an elliptic key's name with an RSA signature", sign(t, fields{"alg": "RS256", "kid": "ec-1"}, own, clusterRSA()), Unproven},
		{"an RSA signature called elliptic", sign(t, fields{"alg": "ES256", "kid": "ec-1"}, own, clusterRSA()), Unproven},
		{"another hash", headed(fields{"alg": "RS512"}), Malformed},
		{"another padding", headed(fields{"alg": "PS256"}), Malformed},

		{"no kid", headed(fields{"kid": nil}), Malformed},
		{"an empty kid", headed(fields{"kid": ""}), Malformed},
		{"a kid that is a path", headed(fields{"kid": "../../etc/passwd"}), Unproven},
		{"a kid without end", headed(fields{"kid": strings.Repeat("k", 300)}), Malformed},
		{"a key of its own", headed(fields{"jwk": rsaJWK("rsa-1", &strangerRSA().PublicKey)}), Malformed},
		{"an address of keys", headed(fields{"jku": "https://keys.example"}), Malformed},
		{"a header that must be understood", headed(fields{"crit": []string{"b64"}, "b64": false}), Malformed},
		{"a header that must be understood, and is nothing", signText(t, []byte(`{"alg":"RS256","crit":null,"kid":"rsa-1"}`), marshal(t, own), clusterRSA()), Malformed},
		{"certificates of its own", headed(fields{"x5c": []string{}}), Malformed},
		{"an empty nonce", headed(fields{"nonce": ""}), Malformed},
		{"a key's name that is a number", headed(fields{"kid": 1}), Malformed},
		{"a type that is a number", headed(fields{"typ": 1}), Malformed},
		{"another type", headed(fields{"typ": "at+jwt"}), Malformed},
		{"a header field twice", signText(t, []byte(`{"alg":"none","alg":"RS256","kid":"rsa-1"}`), marshal(t, own), clusterRSA()), Malformed},
		{"a header field in capitals", signText(t, []byte(`{"ALG":"RS256","kid":"rsa-1"}`), marshal(t, own), clusterRSA()), Malformed},

		{"another issuer", changed(fields{"iss": "https://other.example"}), WrongIssuer},
		{"the issuer with a slash", changed(fields{"iss": ourIssuer + "/"}), WrongIssuer},
		{"no issuer", changed(fields{"iss": nil}), Malformed},
		{"the API server's audience", changed(fields{"aud": []string{ourIssuer}}), WrongTarget},
		{"an audience that begins with ours", changed(fields{"aud": []string{ourAudience + "-test"}}), WrongTarget},
		{"an audience in capitals", changed(fields{"aud": "Pipeguard"}), WrongTarget},
		{"no audience", changed(fields{"aud": nil}), Malformed},
		{"an empty list of audiences", changed(fields{"aud": []string{}}), Malformed},
		{"an audience beside nothing", changed(fields{"aud": []any{nil, ourAudience}}), Malformed},
		{"an audience that is an object", changed(fields{"aud": fields{"0": ourAudience}}), Malformed},

		{"expired", changed(fields{"exp": now.Unix() - 11, "iat": now.Unix() - 99, "nbf": now.Unix() - 99}), WrongTime},
		{"not valid yet", changed(fields{"nbf": now.Unix() + 11}), WrongTime},
		{"made in the future", changed(fields{"iat": now.Unix() + 11}), WrongTime},
		{"valid for a year", changed(fields{"exp": now.Add(365 * 24 * time.Hour).Unix()}), WrongTime},
		{"valid for ever", changed(fields{"exp": nil}), Malformed},
		{"an end beyond all numbers", changed(fields{"exp": 1e300}), Malformed},
		{"an end between two seconds", changed(fields{"exp": float64(now.Unix()) + 0.5}), Malformed},
		{"a negative end", changed(fields{"exp": -1}), Malformed},
		{"an end that is text", changed(fields{"exp": "9999999999"}), Malformed},
		{"no beginning", changed(fields{"nbf": nil}), Malformed},
		{"no time of making", changed(fields{"iat": nil}), Malformed},
		{"an end that comes twice", signText(t, marshal(t, rsaHeader()), []byte(strings.Replace(string(marshal(t, own)), `"exp":`, `"exp":9999999999,"exp":`, 1)), clusterRSA()), Malformed},

		{"an end that comes twice, once spelt otherwise", signText(t, marshal(t, rsaHeader()), []byte(strings.Replace(string(marshal(t, own)), `"exp":`, `"\u0065xp":9999999999,"exp":`, 1)), clusterRSA()), Malformed},
		{"a pod that comes twice", signText(t, marshal(t, rsaHeader()), []byte(strings.Replace(string(marshal(t, own)), `"pod":`, `"pod":{},"pod":`, 1)), clusterRSA()), Malformed},
		{"claims in capitals", signText(t, marshal(t, rsaHeader()), []byte(strings.Replace(string(marshal(t, own)), `"exp":`, `"EXP":`, 1)), clusterRSA()), Malformed},

		{"a token of the old kind", changed(fields{"kubernetes.io": nil}), Malformed},
		{"a token without a pod", changed(fields{"kubernetes.io/pod": nil}), Malformed},
		{"a token without a node", changed(fields{"kubernetes.io/node": nil}), Malformed},
		{"a token without a namespace", changed(fields{"kubernetes.io/namespace": nil}), Malformed},
		{"a token without a service account", changed(fields{"kubernetes.io/serviceaccount": nil}), Malformed},
		{"a subject of another account", changed(fields{"sub": "system:serviceaccount:storage:admin"}), Malformed},
		{"a subject that is a person", changed(fields{"sub": "admin"}), Malformed},
		{"a name with a colon", changed(fields{"kubernetes.io/namespace": "a:b", "sub": "system:serviceaccount:a:b:driver"}), Malformed},
		{"a name with a line break", changed(fields{"kubernetes.io/pod/name": "a\nb"}), Malformed},
		{"a name without end", changed(fields{"kubernetes.io/pod/name": strings.Repeat("a", 254)}), Malformed},

		{"a token of another pod", changed(fields{"kubernetes.io/pod": fields{"name": "driver-x7", "uid": "pod-2"}}), WrongPod},
		{"a token of a pod of the same uid and another name", changed(fields{"kubernetes.io/pod": fields{"name": "driver-x8", "uid": "pod-1"}}), WrongPod},
		{"a uid in capitals", changed(fields{"kubernetes.io/pod/uid": "POD-1"}), WrongPod},
		{"a token of another node", changed(fields{"kubernetes.io/node/name": "win-2"}), WrongNode},
		{"a token of another namespace", changed(fields{"kubernetes.io/namespace": "dev", "sub": "system:serviceaccount:dev:driver"}), WrongAccount},
		{"a token of another account", changed(fields{"kubernetes.io/serviceaccount/name": "admin", "sub": "system:serviceaccount:storage:admin"}), WrongAccount},

		{"two parts", parts[0] + "." + parts[1], Malformed},
		{"four parts", good + ".x", Malformed},
		{"five parts, as of an encrypted one", good + ".x.y", Malformed},
		{"an empty header", "." + parts[1] + "." + parts[2], Malformed},
		{"garbage", "%%%.%%%.%%%", Malformed},
		{"padding", parts[0] + "=." + parts[1] + "." + parts[2], Malformed},
		{"the alphabet of plain base64", parts[0] + "." + parts[1] + "." + strings.Repeat("+/", 8), Malformed},
		{"a line break within", parts[0][:4] + "\n" + parts[0][4:] + "." + parts[1] + "." + parts[2], Malformed},
		{"a space at the end", good + " ", Malformed},
		{"claims that are a list", signText(t, marshal(t, rsaHeader()), []byte(`[]`), clusterRSA()), Malformed},
		{"claims that are null", signText(t, marshal(t, rsaHeader()), []byte(`null`), clusterRSA()), Malformed},
		{"claims that go on", signText(t, marshal(t, rsaHeader()), append(marshal(t, own), "{}"...), clusterRSA()), Malformed},
		{"too long", good + strings.Repeat("A", maxToken), Malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, mode := range []Mode{IfPresent, Required} {
				wantRefusal(t, guard(t, v, mode), bearer(tt.token), driver(), tt.reason)
				wantRefusal(t, guard(t, v, mode), bearer(tt.token), driver(), tt.reason) // and again, from memory
			}
		})
	}
}

// The last character of a signature holds bits that no byte takes. Were they not looked at, one token would have several spellings.
func TestATokenHasOneSpelling(t *testing.T) {
	c := newClock()
	v, _ := offline(t, c)
	text := sign(t, ecHeader(), claimsAt(c.Now()), clusterEC())
	wantDriver(t, guard(t, v, Required), bearer(text), driver())
	wantRefusal(t, guard(t, v, Required), bearer(text[:len(text)-1]+string(text[len(text)-1]+1)), driver(), Malformed)
}

func TestHeadersRefuse(t *testing.T) {
	c := newClock()
	v, _ := offline(t, c)
	good := sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA())
	for name, md := range map[string]metadata.MD{
		"two headers":                   bearer(good, good),
		"two headers, one of them bad":  bearer("x", good),
		"two tokens in one header":      bearer(good + ", Bearer " + good),
		"another scheme":                metadata.Pairs("authorization", "Basic "+good),
		"no scheme":                     metadata.Pairs("authorization", good),
		"an empty header":               metadata.Pairs("authorization", ""),
		"a scheme alone":                metadata.Pairs("authorization", "Bearer"),
		"no token":                      metadata.Pairs("authorization", "Bearer "),
		"two spaces":                    metadata.Pairs("authorization", "Bearer  "+good),
		"a tab":                         metadata.Pairs("authorization", "Bearer\t"+good),
		"far too long":                  bearer(strings.Repeat("A", 1<<20)),
		"a nul byte":                    bearer(good + "\x00"),
		"letters that look like others": bearer(strings.Replace(good, ".", "\u2024", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, guard(t, v, IfPresent), md, driver(), Malformed)
			wantRefusal(t, guard(t, v, Required), md, driver(), Malformed)
		})
	}
	t.Run("the scheme's case does not matter", func(t *testing.T) {
		wantDriver(t, guard(t, v, Required), metadata.Pairs("authorization", "bearer "+good), driver())
	})
}

func TestModes(t *testing.T) {
	c := newClock()
	v, _ := offline(t, c)
	good := sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA())
	nobody := func(t *testing.T, mode Mode, md metadata.MD, caller Facts) Result {
		t.Helper()
		id, result, err := guard(t, v, mode).Check(t.Context(), md, caller)
		if err != nil || id != (Identity{}) {
			t.Errorf("got %+v, %v, want no identity and no error", id, err)
		}
		return result
	}
	t.Run("off looks at nothing", func(t *testing.T) {
		for _, md := range []metadata.MD{nil, bearer(good), bearer("x", "y")} {
			if got := nobody(t, Off, md, driver()); got != (Result{}) {
				t.Errorf("got %+v", got)
			}
		}
	})
	t.Run("ifPresent serves callers without a token, without an identity", func(t *testing.T) {
		if got := nobody(t, IfPresent, nil, driver()); got.Present {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("required refuses callers without a token", func(t *testing.T) {
		wantRefusal(t, guard(t, v, Required), nil, driver(), Missing)
		wantRefusal(t, guard(t, v, Required), metadata.Pairs("proxy-authorization", "Bearer "+good), driver(), Missing)
	})
	t.Run("a caller of no known pod", func(t *testing.T) {
		for _, c := range []caller.Caller{
			{}, {Process: caller.Process{PID: 7}}, {Pod: caller.Pod{UID: "pod-1"}},
			{Process: caller.Process{PID: 7}, Pod: caller.Pod{Namespace: "storage", ServiceAccount: "driver"}},
		} {
			caller := Facts{Caller: c}
			wantRefusal(t, guard(t, v, Required), bearer(good), caller, Unbound)
			if got := nobody(t, IfPresent, bearer(good), caller); !got.Present || !got.Unbound {
				t.Errorf("got %+v, want a token that does not count", got)
			}
		}
	})
	t.Run("the zero guard refuses", func(t *testing.T) { wantRefusal(t, Guard{}, bearer(good), driver(), Unconfigured) })
	t.Run("unknown modes", func(t *testing.T) {
		for _, mode := range []Mode{"", "on", "OFF", "Required"} {
			if _, err := v.Guard("disk-v1", mode); err == nil {
				t.Errorf("mode %q is taken", mode)
			}
		}
	})
	t.Run("nothing to verify with", func(t *testing.T) {
		var none *Verifier
		if _, err := none.Guard("disk-v1", Off); err != nil {
			t.Error(err)
		}
		for _, mode := range []Mode{IfPresent, Required} {
			if _, err := none.Guard("disk-v1", mode); err == nil {
				t.Errorf("mode %q is taken without a verifier", mode)
			}
		}
	})
}

func TestKeysRotate(t *testing.T) {
	c := newClock()
	v, file := offline(t, c)
	g := guard(t, v, Required)
	old := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	next := bearer(sign(t, fields{"alg": "RS256", "kid": "rsa-2"}, claimsAt(c.Now()), strangerRSA()))
	reload := func(t *testing.T, want bool) {
		t.Helper()
		if changed, err := v.Reload(); err != nil || changed != want {
			t.Fatalf("Reload: %v, %v, want %v", changed, err, want)
		}
	}

	wantDriver(t, g, old, driver())
	wantRefusal(t, g, next, driver(), Unproven)
	reload(t, false)

	writeFile(t, file, document(t, rsaJWK("rsa-1", &clusterRSA().PublicKey), rsaJWK("rsa-2", &strangerRSA().PublicKey)))
	reload(t, true)
	wantDriver(t, g, old, driver())
	wantDriver(t, g, next, driver()) // although it was refused a moment ago

	writeFile(t, file, document(t, rsaJWK("rsa-2", &strangerRSA().PublicKey)))
	reload(t, true)
	wantRefusal(t, g, old, driver(), Unproven) // although it was allowed a moment ago
	wantDriver(t, g, next, driver())

	for name, text := range map[string]string{"broken": "{", "empty": "", "without keys": `{"keys":[]}`} {
		writeFile(t, file, []byte(text))
		if _, err := v.Reload(); err == nil {
			t.Errorf("a file that is %s was taken", name)
		}
		wantDriver(t, g, next, driver())
	}

	if runtime.GOOS == "windows" { // which has access lists instead of modes
		return
	}
	writeFile(t, file, document(t, rsaJWK("rsa-1", &clusterRSA().PublicKey)))
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Reload(); err == nil {
		t.Error("a file that everybody can write was taken")
	}
	wantRefusal(t, g, old, driver(), Unproven)
}

func TestKeysDocumentRefuses(t *testing.T) {
	rsaKey, ecKey := rsaJWK("rsa-1", &clusterRSA().PublicKey), ecJWK(t, "ec-1", &clusterEC().PublicKey)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := p384.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	small := b64(append([]byte{0xff}, make([]byte, 127)...))
	for name, keys := range map[string][]fields{
		"none":                  {},
		"one name twice":        {rsaKey, rsaKey},
		"no name":               {with(rsaKey, fields{"kid": nil})},
		"a private key":         {with(rsaKey, fields{"d": "AQAB"})},
		"half a private key":    {with(rsaKey, fields{"p": "AQAB"})},
		"a secret besides":      {with(ecKey, fields{"k": "c2VjcmV0"})},
		"a shared secret":       {{"kty": "oct", "kid": "s", "k": "c2VjcmV0"}},
		"for encryption":        {with(rsaKey, fields{"use": "enc"})},
		"to encrypt alone":      {with(rsaKey, fields{"key_ops": []string{"encrypt"}})},
		"to sign alone":         {with(ecKey, fields{"use": nil, "key_ops": []string{"sign"}})},
		"for no operation":      {with(ecKey, fields{"key_ops": []string{}})},
		"operations as a text":  {with(rsaKey, fields{"key_ops": "verify"})},
		"1024 bits":             {with(rsaKey, fields{"n": small})},
		"8200 bits":             {with(rsaKey, fields{"n": b64(bytes.Repeat([]byte{0xff}, 1025))})},
		"an exponent of 3":      {with(rsaKey, fields{"e": "Aw"})},
		"an even modulus":       {with(rsaKey, fields{"n": b64(append(clusterRSA().N.Bytes()[:255], 2))})},
		"another hash":          {with(rsaKey, fields{"alg": "RS512"})},
		"RSA called a secret":   {with(rsaKey, fields{"alg": "HS256"})},
		"RSA called elliptic":   {with(rsaKey, fields{"alg": "ES256"})},
		"another curve":         {with(ecKey, fields{"crv": "P-384"})},
		"a key of P-384":        {{"kty": "EC", "kid": "a", "crv": "P-384", "x": b64(point[1:49]), "y": b64(point[49:])}},
		"a key of Edwards":      {{"kty": "OKP", "kid": "a", "crv": "Ed25519", "x": b64(point[1:33])}},
		"a point off the curve": {with(ecKey, fields{"x": b64(make([]byte, 32))})},
		"half a point":          {with(ecKey, fields{"y": nil})},
		"base64 with padding":   {with(rsaKey, fields{"e": "AQAB="})},
		"an unknown type":       {with(ecKey, fields{"kty": "OKP"})},
		"one good, one bad":     {rsaKey, with(ecKey, fields{"kid": nil})},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseKeys(document(t, keys...)); err == nil {
				t.Error("the document was taken")
			}
		})
	}
	good := string(document(t, rsaKey))
	for name, text := range map[string]string{
		"a list of keys twice": strings.Replace(good, `"keys"`, `"keys":[],"keys"`, 1), "a field twice": strings.Replace(good, `"kid"`, `"kid":"x","kid"`, 1),
		"text behind it": good + "{}", "too long": good + strings.Repeat(" ", maxKeysFile),
	} {
		if _, err := parseKeys([]byte(text)); err == nil {
			t.Errorf("%s: the document was taken", name)
		}
	}
	large := with(rsaKey, fields{"kid": "rsa-2", "n": b64(bytes.Repeat([]byte{0xff}, 1024))})
	if _, err := parseKeys(document(t, with(rsaKey, fields{"new": "t"}), large, with(ecKey, fields{"alg": nil, "use": nil, "key_ops": []string{"sign", "verify"}}))); err != nil {
		t.Errorf("fields that do not matter, and the largest key: %v", err)
	}
}

func TestExpiryEndsWhatIsRemembered(t *testing.T) {
	c := newClock()
	v, _ := offline(t, c)
	g := guard(t, v, Required)
	text := bearer(sign(t, rsaHeader(), with(claimsAt(c.Now()), fields{"exp": c.Now().Unix() + 30}), clusterRSA()))
	wantDriver(t, g, text, driver())
	c.pass(29 * time.Second)
	if got := wantDriver(t, g, text, driver()); !got.Cached {
		t.Error("asked again within two minutes")
	}
	c.pass(12 * time.Second)
	wantRefusal(t, g, text, driver(), WrongTime)
}

func TestOneCallersAnswerIsNotAnothers(t *testing.T) {
	c := newClock()
	v, _ := offline(t, c)
	g := guard(t, v, Required)
	text := bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	wantDriver(t, g, text, driver())
	thief := driver()
	thief.Process.PID, thief.Pod.UID, thief.Pod.Name = 900, "pod-2", "thief"
	wantRefusal(t, g, text, thief, WrongPod)
	thief.Pod.Name = "driver-x7" // a pod that was made anew under the same name
	wantRefusal(t, g, text, thief, WrongPod)
	thief.Process = driver().Process
	wantRefusal(t, g, text, thief, WrongPod)
	wantDriver(t, g, text, driver()) // whom the thief's refusals do not lock out
	other := driver()
	other.Process.PID = 413
	if got := wantDriver(t, g, text, other); got.Cached {
		t.Error("what was found out for one process was used for another")
	}
	for _, change := range []func(*Facts){
		func(f *Facts) { f.Pod.Namespace = "dev" },
		func(f *Facts) { f.Pod.ServiceAccount = "default" },
	} {
		f := driver()
		change(&f)
		wantRefusal(t, g, text, f, WrongAccount)
	}
}

func TestAProcessThatEndedIsRefused(t *testing.T) {
	c := newClock()
	v, _ := offline(t, c)
	f := driver()
	f.Alive = func() error { return errors.New("process 412 has ended") }
	wantRefusal(t, guard(t, v, Required), bearer(sign(t, rsaHeader(), claimsAt(c.Now()), clusterRSA())), f, Ended)
}

func TestSecretsDoNotShow(t *testing.T) {
	s := Secret("eyJhbGciOi")
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s, s, s), string(marshal(t, fields{"s": s}))} {
		if strings.Contains(text, "eyJ") || strings.Contains(text, "65794a") {
			t.Errorf("shown: %s", text)
		}
	}
}
