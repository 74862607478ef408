package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"

	"sigs.k8s.io/json"
)

// The algorithms that tokens may be signed with (RFC 7518, section 3.1). Which one holds for a key follows from the key.
const (
	rs256 = "RS256"
	es256 = "ES256"
)

const (
	maxKeys     = 64
	maxKeysFile = 256 << 10 // bytes; one key takes about 400
	minRSA      = 2048      // bits
	maxRSA      = 8192      // bits; the work for a signature grows with the square
)

// keys are those of a JWKS document, by their names.
type keys struct {
	byID map[string]crypto.PublicKey // *rsa.PublicKey or *ecdsa.PublicKey on P-256
	sum  [sha256.Size]byte           // of the document
}

// jwk is a public key of RFC 7517 and RFC 7518, section 6.
type jwk struct {
	Kty string `json:"kty"`
	Kid string `json:"kid"`
	Use string `json:"use"`
	Alg string `json:"alg"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Y   string `json:"y"`
	N   string `json:"n"`
	E   string `json:"e"`
	D   string `json:"d"`
	K   string `json:"k"`
}

// parseKeys reads a document as /openid/v1/jwks of an API server gives it. One key that is not fit makes the whole unfit,
// so that a mistake is seen when the document is put in place and not when the first token comes that needs the key.
func parseKeys(text []byte) (*keys, error) {
	var document struct {
		Keys []jwk `json:"keys"`
	}
	if len(text) > maxKeysFile {
		return nil, fmt.Errorf("the document is longer than %d bytes", maxKeysFile)
	}
	if strict, err := json.UnmarshalStrict(text, &document, json.DisallowDuplicateFields); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	} else if len(strict) > 0 {
		return nil, errors.Join(strict...)
	}
	if n := len(document.Keys); n == 0 || n > maxKeys {
		return nil, fmt.Errorf("the document has %d keys, and 1 to %d can be used", n, maxKeys)
	}
	k := &keys{byID: map[string]crypto.PublicKey{}, sum: sha256.Sum256(text)}
	for i, j := range document.Keys {
		key, err := j.public()
		if err == nil && k.byID[j.Kid] != nil {
			err = errors.New("another key has the same kid")
		}
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		k.byID[j.Kid] = key
	}
	return k, nil
}

func (j jwk) public() (crypto.PublicKey, error) {
	switch {
	case j.D != "" || j.K != "":
		return nil, errors.New("it is a private key or a shared secret: this file is for public keys")
	case j.Kid == "" || len(j.Kid) > maxKid:
		return nil, errors.New("it has no kid")
	case j.Use != "" && j.Use != "sig":
		return nil, errors.New("its use is not sig")
	case j.Kty == "RSA" && (j.Alg == "" || j.Alg == rs256):
		return j.rsa()
	case j.Kty == "EC" && (j.Alg == "" || j.Alg == es256):
		return j.ecdsa()
	}
	return nil, fmt.Errorf("a key of type %q for %q is not supported, only RSA for %s and EC for %s", j.Kty, j.Alg, rs256, es256)
}

func (j jwk) rsa() (crypto.PublicKey, error) {
	n, err := base64URL.DecodeString(j.N)
	if err != nil {
		return nil, errors.New("n is not base64url")
	}
	e, err := base64URL.DecodeString(j.E)
	if err != nil || len(e) == 0 || len(e) > 4 {
		return nil, errors.New("e is not the base64url of a small number")
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
		return nil, fmt.Errorf("the modulus has %d bits, and must have %d to %d", bits, minRSA, maxRSA)
	}
	if key.E < 65537 || key.E > 1<<31-1 || key.E%2 == 0 || key.N.Bit(0) == 0 {
		return nil, errors.New("n and e are not those of an RSA key that can be trusted")
	}
	return key, nil
}

func (j jwk) ecdsa() (crypto.PublicKey, error) {
	if j.Crv != "P-256" {
		return nil, fmt.Errorf("curve %q is not supported, only P-256", j.Crv)
	}
	x, errX := base64URL.DecodeString(j.X)
	y, errY := base64URL.DecodeString(j.Y)
	if errX != nil || errY != nil || len(x) != 32 || len(y) != 32 {
		return nil, errors.New("x and y are not the base64url of 32 bytes each")
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil, errors.New("x and y are no point of the curve")
	}
	return key, nil
}

// verify says whether the key that the token names signed it. The algorithm is the key's; that the token names the same
// is checked besides.
func (k *keys) verify(t *jws) *Refusal {
	key, ok := k.byID[t.kid]
	if !ok {
		return refuse(Unproven, "its key is not among the keys that the cluster has published here")
	}
	hash := sha256.Sum256([]byte(t.signed))
	switch key := key.(type) {
	case *rsa.PublicKey:
		if t.alg == rs256 && rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], t.signature) == nil {
			return nil
		}
	case *ecdsa.PublicKey:
		if t.alg == es256 && len(t.signature) == 64 &&
			ecdsa.Verify(key, hash[:], new(big.Int).SetBytes(t.signature[:32]), new(big.Int).SetBytes(t.signature[32:])) {
			return nil
		}
	}
	return refuse(Unproven, "its signature is not that of the key it names")
}
