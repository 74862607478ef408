package bundle

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// KeyID names a public key: "es256:" and the first 32 hexadecimal digits of the SHA-256 of its DER form (RFC 5280,
// SubjectPublicKeyInfo). It is derived from the key, so that no key can take the name of another.
type KeyID string

// Kinds of PEM blocks.
const (
	pemPrivate = "PRIVATE KEY" // PKCS #8, RFC 5958
	pemPublic  = "PUBLIC KEY"
	// maxKeys bounds a file of public keys: a rotation needs two.
	maxKeys = 8
	// maxKeyFile bounds a file of keys in bytes.
	maxKeyFile = 16 << 10
)

// Key signs bundles. Its String does not reveal the private key.
type Key struct {
	private *ecdsa.PrivateKey
	public  []byte // DER
	id      KeyID
}

// NewKey makes a key on P-256.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return newKey(private)
}

func newKey(private *ecdsa.PrivateKey) (*Key, error) {
	der, id, err := identify(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	return &Key{private, der, id}, nil
}

func identify(public *ecdsa.PublicKey) (der []byte, id KeyID, err error) {
	if public.Curve != elliptic.P256() {
		return nil, "", fmt.Errorf("a key on %s: want P-256", public.Curve.Params().Name)
	}
	der, err = x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, "", fmt.Errorf("encode the public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return der, KeyID("es256:" + hex.EncodeToString(sum[:16])), nil
}

// ID names the key.
func (k *Key) ID() KeyID { return k.id }

// String keeps the key out of logs.
func (k *Key) String() string { return "[key " + string(k.id) + "]" }

// GoString does as String.
func (k *Key) GoString() string { return k.String() }

// PublicPEM is the public half, which nodes are given.
func (k *Key) PublicPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: k.public})
}

// PrivatePEM is the private half, which signs. Its holder decides the policy of all nodes that pin the key.
func (k *Key) PrivatePEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("encode the private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPrivate, Bytes: der}), nil
}

// ParseKey reads a private key: one PEM block of PKCS #8. Its errors hold nothing of the text.
func ParseKey(text []byte) (*Key, error) {
	blocks, err := blocks(text)
	if err != nil {
		return nil, err
	}
	if len(blocks) != 1 || blocks[0].Type != pemPrivate {
		return nil, fmt.Errorf("want one block %q", pemPrivate)
	}
	any, err := x509.ParsePKCS8PrivateKey(blocks[0].Bytes)
	if err != nil {
		return nil, errors.New("the block holds no private key of PKCS #8")
	}
	private, ok := any.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T: want one on P-256", any)
	}
	return newKey(private)
}

// Keys are the public keys that a node has pinned. The zero value trusts no key.
type Keys struct{ byID map[KeyID]*ecdsa.PublicKey }

// ParseKeys reads public keys, one PEM block each: one, or during a rotation the old and the new.
func ParseKeys(text []byte) (Keys, error) {
	blocks, err := blocks(text)
	if err != nil {
		return Keys{}, err
	}
	keys := Keys{map[KeyID]*ecdsa.PublicKey{}}
	for i, b := range blocks {
		if b.Type == pemPrivate {
			return Keys{}, fmt.Errorf("block %d is a private key: nodes have the public one, and this one is no secret any more if it was here", i+1)
		}
		if b.Type != pemPublic {
			return Keys{}, fmt.Errorf("block %d is %q: want %q", i+1, b.Type, pemPublic)
		}
		any, err := x509.ParsePKIXPublicKey(b.Bytes)
		if err != nil {
			return Keys{}, fmt.Errorf("block %d: %w", i+1, err)
		}
		public, ok := any.(*ecdsa.PublicKey)
		if !ok {
			return Keys{}, fmt.Errorf("block %d is a key of type %T: want one on P-256", i+1, any)
		}
		_, id, err := identify(public)
		if err != nil {
			return Keys{}, fmt.Errorf("block %d: %w", i+1, err)
		}
		keys.byID[id] = public
	}
	return keys, nil
}

// blocks reads PEM blocks and nothing else but blanks between them: what is not understood might have been a key.
func blocks(text []byte) ([]*pem.Block, error) {
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("more than %d bytes of keys", maxKeyFile)
	}
	var out []*pem.Block
	for rest := trim(text); len(rest) > 0; {
		if rest[0] != '-' {
			return nil, errors.New("text that is no PEM block")
		}
		block, after := pem.Decode(rest)
		if block == nil {
			return nil, errors.New("text that is no PEM block")
		}
		if len(block.Headers) > 0 {
			return nil, errors.New("a PEM block with headers")
		}
		if out = append(out, block); len(out) > maxKeys {
			return nil, fmt.Errorf("more than %d keys", maxKeys)
		}
		rest = trim(after)
	}
	if len(out) == 0 {
		return nil, errors.New("no key")
	}
	return out, nil
}
