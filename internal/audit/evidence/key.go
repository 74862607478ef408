package evidence

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

// Signature types of signed notes. https://c2sp.org/signed-note, https://c2sp.org/tlog-cosignature
const (
	algLog    = 0x01 // Ed25519 over the text
	algCosign = 0x04 // Ed25519 over a time and the text
)

// OriginPrefix begins the origin of each log of ours; the node's name, or another name for the log, follows.
const OriginPrefix = "pipeguard.dev/audit/"

// Origin returns the origin of the log of a node or of another name. An origin is returned unchanged.
func Origin(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return OriginPrefix + name
}

// Key is a private key with its name: of a log, its origin; of a witness, the witness's name. It never prints its private half.
type Key struct {
	name    string
	private ed25519.PrivateKey
}

// NewKey makes a key. The name must not be empty and must not have spaces or plus signs.
func NewKey(name string) (*Key, error) {
	if !isName(name) {
		return nil, fmt.Errorf("key name %q: must be UTF-8 without spaces, control characters and plus signs", name)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make an Ed25519 key: %w", err)
	}
	return &Key{name, private}, nil
}

func isName(name string) bool {
	return name != "" && len(name) <= 512 && utf8.ValidString(name) && !strings.Contains(name, "+") &&
		strings.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) < 0
}

// errKey does not quote the text, which may be a secret.
var errKey = errors.New("not a private key of an audit log (PRIVATE+KEY+name+hash+base64, Ed25519)")

// ParseKey reads what Secret returns, with at most one newline after it.
func ParseKey(text []byte) (*Key, error) {
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if _, err := note.NewSigner(line); err != nil {
		return nil, errKey
	}
	parts := strings.SplitN(line, "+", 5)
	seed, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(parts) != 5 || len(seed) != 1+ed25519.SeedSize || !isName(parts[2]) {
		return nil, errKey
	}
	return &Key{parts[2], ed25519.NewKeyFromSeed(seed[1:])}, nil
}

// Secret returns the private key in the form of golang.org/x/mod/sumdb/note, with a newline. Store it only in a file of mode 0600.
func (k *Key) Secret() []byte {
	seed := append([]byte{algLog}, k.private.Seed()...)
	return fmt.Appendf(nil, "PRIVATE+KEY+%s+%08x+%s\n", k.name, k.verifier(algLog).KeyHash(), base64.StdEncoding.EncodeToString(seed))
}

// Name returns the key's name: the origin of a log.
func (k *Key) Name() string { return k.name }

// LogKey returns the verifier key for checkpoints that this key signs as a log.
func (k *Key) LogKey() string { return k.verifier(algLog).String() }

// WitnessKey returns the verifier key for cosignatures that this key gives as a witness.
func (k *Key) WitnessKey() string { return k.verifier(algCosign).String() }

// String returns the public half, so that printing a key by accident reveals no secret.
func (k *Key) String() string { return k.LogKey() }

// GoString is String, for the verb %#v.
func (k *Key) GoString() string { return k.LogKey() }

// Format keeps every verb from reaching the private half.
func (k *Key) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(k.LogKey())) }

// MarshalText is String, for encoders.
func (k *Key) MarshalText() ([]byte, error) { return []byte(k.LogKey()), nil }

// verifier verifies what the key signs, by type.
func (k *Key) verifier(alg byte) verifier {
	return verifier{k.name, alg, ed25519.PublicKey(k.private[ed25519.PrivateKeySize-ed25519.PublicKeySize:])}
}
