package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// algorithms are those that tokens may be signed with (RFC 7518, section 3.1). Which one holds for a key follows from the key.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256}

const (
	maxKeys     = 64
	maxKeysFile = 256 << 10 // bytes; one key takes about 400
	minRSA      = 2048      // bits
	maxRSA      = 8192      // bits; the work for a signature grows with the square
)

func init() { jose.MaxRSAModulusBits = maxRSA } // which go-jose wants set before anything is parsed

// keys are those of a JWKS document, by their names.
type keys struct {
	byID map[string]crypto.PublicKey // *rsa.PublicKey or *ecdsa.PublicKey on P-256
	sum  [sha256.Size]byte           // of the document
}

// parseKeys reads a document as /openid/v1/jwks of an API server gives it. One key that is not fit makes the whole unfit,
// so that a mistake is seen when the document is put in place and not when the first token comes that needs the key.
func parseKeys(text []byte) (*keys, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if len(text) > maxKeysFile {
		return nil, fmt.Errorf("the document is longer than %d bytes", maxKeysFile)
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	if n := len(document.Keys); n == 0 || n > maxKeys {
		return nil, fmt.Errorf("the document has %d keys, and 1 to %d can be used", n, maxKeys)
	}
	k := &keys{byID: map[string]crypto.PublicKey{}, sum: sha256.Sum256(text)}
	for i, raw := range document.Keys {
		key, err := publicKey(raw)
		if err == nil && k.byID[key.KeyID] != nil {
			err = errors.New("another key has the same kid")
		}
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		k.byID[key.KeyID] = key.Key
	}
	return k, nil
}

// publicKey reads a key of RFC 7517 and RFC 7518, section 6, that tokens may be verified with.
func publicKey(text []byte) (key jose.JSONWebKey, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return key, err
	}
	for _, name := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"} {
		if _, isSecret := fields[name]; isSecret {
			return key, errors.New("it is a private key or a shared secret: this file is for public keys")
		}
	}
	if err := json.Unmarshal(text, &key); err != nil {
		return key, err
	}
	if raw, ok := fields["key_ops"]; ok { // of which go-jose knows nothing
		var operations []string
		if err := json.Unmarshal(raw, &operations); err != nil || !slices.Contains(operations, "verify") {
			return key, errors.New("its key_ops do not allow verify")
		}
	}
	asRSA, isRSA := key.Key.(*rsa.PublicKey)
	asEC, isEC := key.Key.(*ecdsa.PublicKey)
	switch {
	case key.KeyID == "" || len(key.KeyID) > maxKid:
		return key, errors.New("it has no kid")
	case key.Use != "" && key.Use != "sig":
		return key, errors.New("its use is not sig")
	case isRSA && (key.Algorithm == "" || key.Algorithm == string(jose.RS256)):
		return key, checkRSA(asRSA)
	case isEC && asEC.Curve == elliptic.P256() && (key.Algorithm == "" || key.Algorithm == string(jose.ES256)):
		return key, nil // go-jose has checked that it is on the curve
	}
	return key, fmt.Errorf("a key of type %T for %q is not supported, only RSA for %s and EC on P-256 for %s", key.Key, key.Algorithm, jose.RS256, jose.ES256)
}

func checkRSA(key *rsa.PublicKey) error {
	if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
		return fmt.Errorf("the modulus has %d bits, and must have %d to %d", bits, minRSA, maxRSA)
	}
	if key.E < 65537 || key.E > 1<<31-1 || key.E%2 == 0 || key.N.Bit(0) == 0 {
		return errors.New("n and e are not those of an RSA key that can be trusted")
	}
	return nil
}

// verify says whether the key that the token names signed it, by the key's algorithm.
func (k *keys) verify(t *jws) *Refusal {
	key, ok := k.byID[t.kid]
	if !ok {
		return refuse(Unproven, "its key is not among the keys that the cluster has published here")
	}
	if t.token.Claims(key) != nil {
		return refuse(Unproven, "its signature is not that of the key it names")
	}
	return nil
}
