package bundle

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	opa "github.com/open-policy-agent/opa/v1/bundle"
)

// OPA's own signer and verifier are not used: they read the algorithm and where to find the key from settings that are
// wider than the one form that is taken here, and their signatures differ from one run to the next. Hashes are OPA's.
// See https://www.openpolicyagent.org/docs/management-bundles#signature-format.

const (
	algorithm = "ES256" // RFC 7518, 3.4
	hashing   = string(opa.SHA256)
	halfBytes = 32 // of a signature on P-256
)

// header is the JOSE header (RFC 7515); the parameters that it does not have, such as jwk and jku, are refused.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     KeyID  `json:"kid"`
}

// payload says which files there are, and what is in them.
type payload struct {
	Files []opa.FileInfo `json:"files"`
}

// signed is a token that was verified.
type signed struct {
	key    KeyID
	hashes map[string]string // of files, by name
	digest [sha256.Size]byte // of the payload, so of all files
}

var encoding = base64.RawURLEncoding.Strict()

// sign makes the token of .signatures.json. Equal files and keys give equal tokens (RFC 6979).
func sign(files map[string][]byte, key *Key) (string, error) {
	var p payload
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p.Files = append(p.Files, opa.NewFile(strings.TrimPrefix(name, "/"), hashOf(files[name]), hashing))
	}
	head, err := encode(header{algorithm, key.id})
	if err != nil {
		return "", err
	}
	body, err := encode(p)
	if err != nil {
		return "", err
	}
	text := encoding.EncodeToString(head) + "." + encoding.EncodeToString(body)
	digest := sha256.Sum256([]byte(text))
	der, err := key.private.Sign(nil, digest[:], crypto.SHA256) // without randomness: deterministic
	if err != nil {
		return "", fmt.Errorf("sign with %s: %w", key.id, err)
	}
	var rs struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &rs); err != nil {
		return "", fmt.Errorf("sign with %s: %w", key.id, err)
	}
	raw := make([]byte, 2*halfBytes)
	rs.R.FillBytes(raw[:halfBytes])
	rs.S.FillBytes(raw[halfBytes:])
	return text + "." + encoding.EncodeToString(raw), nil
}

// verify returns what a token says, if one of the keys signed it.
func (k Keys) verify(token string) (signed, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return signed{}, refuse(ReasonUnsigned, errors.New("want a token of three parts"))
	}
	var raw [3][]byte
	for i, p := range parts {
		var err error
		if raw[i], err = encoding.DecodeString(p); err != nil {
			return signed{}, refuse(ReasonSignature, fmt.Errorf("part %d of the token: %w", i+1, err))
		}
	}
	var h header
	if err := decode(raw[0], &h); err != nil {
		return signed{}, refuse(ReasonSignature, fmt.Errorf("header of the token: %w", err))
	}
	if h.Algorithm != algorithm {
		return signed{}, refuse(ReasonSignature, fmt.Errorf("algorithm %q: want %s", h.Algorithm, algorithm))
	}
	public, ok := k.byID[h.KeyID]
	if !ok {
		return signed{}, refuse(ReasonKey, fmt.Errorf("signed with the key %q, and pinned are %s", h.KeyID, k))
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if len(raw[2]) != 2*halfBytes ||
		!ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(raw[2][:halfBytes]), new(big.Int).SetBytes(raw[2][halfBytes:])) {
		return signed{}, refuse(ReasonSignature, fmt.Errorf("this is not the signature of %s", h.KeyID))
	}
	var p payload
	if err := decode(raw[1], &p); err != nil {
		return signed{}, refuse(ReasonSignature, fmt.Errorf("payload of the token: %w", err))
	}
	out := signed{key: h.KeyID, hashes: map[string]string{}, digest: sha256.Sum256(raw[1])}
	for _, f := range p.Files {
		name := "/" + f.Name
		if _, twice := out.hashes[name]; twice || f.Algorithm != hashing {
			return signed{}, refuse(ReasonSignature, fmt.Errorf("file %q: named twice, or hashed by %q", f.Name, f.Algorithm))
		}
		out.hashes[name] = f.Hash
	}
	return out, nil
}

func (k Keys) has(id KeyID) bool { return k.byID[id] != nil }

// IDs are the names of the keys, sorted.
func (k Keys) IDs() []KeyID { return slices.Sorted(maps.Keys(k.byID)) }

// String lists the names.
func (k Keys) String() string {
	if len(k.byID) == 0 {
		return "none"
	}
	names := make([]string, 0, len(k.byID))
	for _, id := range k.IDs() {
		names = append(names, string(id))
	}
	return strings.Join(names, ", ")
}

// decode reads the one JSON value that encode would have written for what it reads: no key twice, none that is not
// known, none in another case, nothing behind it. Two readers can then not disagree on what was signed.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	again, err := encode(into)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, text) {
		return errors.New("it is not written as it would be written here: a key twice, a blank, an order")
	}
	return nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func trim(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }
