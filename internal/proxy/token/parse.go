package token

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
)

// jws is a token that was taken apart. Nothing of it is proven yet.
type jws struct {
	token  *jwt.JSONWebToken // verifies the signature
	kid    string
	claims claims
}

// base64URL is that of RFC 7515, section 2: without padding, and with no two spellings of the same bytes.
var base64URL = base64.RawURLEncoding.Strict()

// maxKid is in bytes; those of Kubernetes are 43 long.
const maxKid = 256

// parse takes a token in the compact form of RFC 7515 apart, as the API server writes it, and refuses every other form.
// The texts of errors are our own, since those of decoders would quote the token.
func parse(text Secret) (*jws, *Refusal) {
	if len(text) > maxToken {
		return nil, refuse(Malformed, "it is too long")
	}
	parts := strings.Split(string(text), ".")
	if len(parts) != 3 {
		return nil, refuse(Malformed, "it has %d parts and not three", len(parts))
	}
	for i, part := range parts { // go-jose takes other spellings of the same bytes, and line breaks, as base64URL does
		if bytes, err := base64URL.DecodeString(part); err != nil || len(bytes) == 0 || strings.ContainsAny(part, "\r\n") {
			return nil, refuse(Malformed, "part %d is not base64url", i+1)
		}
	}
	if !isPlainHeader(parts[0]) {
		return nil, refuse(Malformed, "its header is not the JSON of alg, kid and typ alone")
	}
	token, err := jwt.ParseSigned(string(text), algorithms)
	if wrong := (*jose.ErrUnexpectedSignatureAlgorithm)(nil); errors.As(err, &wrong) {
		return nil, refuse(Malformed, "its algorithm is neither %s nor %s", jose.RS256, jose.ES256)
	} else if err != nil {
		return nil, refuse(Malformed, "its header is not the JSON of alg, kid and typ alone")
	}
	head := token.Headers[0]
	if head.KeyID == "" || len(head.KeyID) > maxKid {
		return nil, refuse(Malformed, "it does not name its key")
	}
	if typ, given := head.ExtraHeaders[jose.HeaderType]; given {
		if name, _ := typ.(string); !strings.EqualFold(name, "JWT") {
			return nil, refuse(Malformed, "it is of another type than JWT")
		}
	}
	t := &jws{token: token, kid: head.KeyID}
	// Unknown fields are the issuer's business; one that comes twice is an error.
	if err := token.UnsafeClaimsWithoutVerification(&t.claims); err != nil {
		return nil, refuse(Malformed, "its claims are not those of a service account's token")
	}
	if err := t.claims.complete(); err != nil {
		return nil, err
	}
	return t, nil
}

// isPlainHeader says whether a header has alg, kid and typ alone, each once. A field beside these could change what the others
// mean (crit, b64), or bring a key along (jwk, jku, x5c, x5u): it is refused before anything reads it.
func isPlainHeader(part string) bool {
	text, err := base64URL.DecodeString(part)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return false
	}
	for _, name := range []string{"alg", "kid", "typ"} {
		delete(fields, name)
	}
	return len(fields) == 0
}
