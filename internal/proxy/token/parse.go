package token

import (
	"encoding/base64"
	"strings"

	"sigs.k8s.io/json"
)

// jws is a token that was taken apart. Nothing of it is proven yet.
type jws struct {
	alg, kid  string
	signed    string // what the signature is of
	signature []byte
	claims    claims
}

// base64URL is that of RFC 7515, section 2: without padding, and with no two spellings of the same bytes.
var base64URL = base64.RawURLEncoding.Strict()

// protected is the header of a token. A field beside these could change what the others mean (crit, b64), or bring a key
// along (jwk, jku, x5c, x5u), so there must be none.
type protected struct {
	Alg string `json:"alg"`
	Kid string `json:"kid"`
	Typ string `json:"typ"`
}

// maxKid is in bytes; those of Kubernetes are 43 long.
const maxKid = 256

// parse takes a token in the compact form of RFC 7515 apart, as the API server writes it, and refuses every other form.
func parse(text Secret) (*jws, *Refusal) {
	if len(text) > maxToken {
		return nil, refuse(Malformed, "it is too long")
	}
	parts := strings.Split(string(text), ".")
	if len(parts) != 3 {
		return nil, refuse(Malformed, "it has %d parts and not three", len(parts))
	}
	var bytes [3][]byte
	for i, part := range parts {
		var err error
		if bytes[i], err = base64URL.DecodeString(part); err != nil || len(bytes[i]) == 0 {
			return nil, refuse(Malformed, "part %d is not base64url", i+1) // the decoder's words would quote the token
		}
		if strings.ContainsAny(part, "\r\n") { // which the decoder skips
			return nil, refuse(Malformed, "part %d is not base64url", i+1)
		}
	}
	var head protected
	if strict, err := json.UnmarshalStrict(bytes[0], &head); err != nil || len(strict) > 0 {
		return nil, refuse(Malformed, "its header is not the JSON of alg, kid and typ alone")
	}
	switch {
	case head.Alg != rs256 && head.Alg != es256:
		return nil, refuse(Malformed, "its algorithm is neither %s nor %s", rs256, es256)
	case head.Kid == "" || len(head.Kid) > maxKid:
		return nil, refuse(Malformed, "it does not name its key")
	case head.Typ != "" && !strings.EqualFold(head.Typ, "JWT"):
		return nil, refuse(Malformed, "it is of another type than JWT")
	}
	t := &jws{alg: head.Alg, kid: head.Kid, signed: string(text[:len(parts[0])+1+len(parts[1])]), signature: bytes[2]}
	// Fields that are not known here are the issuer's business; one that comes twice is nobody's.
	if strict, err := json.UnmarshalStrict(bytes[1], &t.claims, json.DisallowDuplicateFields); err != nil || len(strict) > 0 {
		return nil, refuse(Malformed, "its claims are not those of a service account's token")
	}
	if err := t.claims.complete(); err != nil {
		return nil, err
	}
	return t, nil
}
