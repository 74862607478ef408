package evidence

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// signer signs a text with a key: as a log, or, of type algCosign, together with a time: a witness, when it saw the text; a log, when it signed.
type signer struct {
	*Key
	alg byte
	at  time.Time // for algCosign
}

// KeyHash is the id of the key in signatures.
func (s signer) KeyHash() uint32 { return s.verifier(s.alg).KeyHash() }

// Sign implements note.Signer.
func (s signer) Sign(text []byte) ([]byte, error) {
	if s.alg == algLog {
		return ed25519.Sign(s.private, text), nil
	}
	seconds := s.at.Unix()
	if seconds < 0 || seconds > lastSecond {
		return nil, fmt.Errorf("cosign at %v: not within the years 1970 to 9999", s.at)
	}
	out := binary.BigEndian.AppendUint64(nil, uint64(seconds))
	return append(out, ed25519.Sign(s.private, cosigned(uint64(seconds), text))...), nil
}

// lastSecond is the end of the year 9999: later times have no text form, and would not compare.
const lastSecond = 253_402_300_799

// cosigned is the message of a cosignature/v1. https://c2sp.org/tlog-cosignature
func cosigned(seconds uint64, text []byte) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", seconds), text...)
}

// verifier verifies signatures of both types.
type verifier struct {
	name   string
	alg    byte
	public ed25519.PublicKey
}

// Name is the name of the key.
func (v verifier) Name() string { return v.name }

// KeyHash is the key id of signed notes.
func (v verifier) KeyHash() uint32 {
	sum := sha256.Sum256(append(append([]byte(v.name+"\n"), v.alg), v.public...))
	return binary.BigEndian.Uint32(sum[:])
}

// String is the verifier key as signed notes have it.
func (v verifier) String() string {
	return fmt.Sprintf("%s+%08x+%s", v.name, v.KeyHash(), base64.StdEncoding.EncodeToString(append([]byte{v.alg}, v.public...)))
}

func (v verifier) Verify(text, sig []byte) bool {
	if v.alg == algCosign {
		if len(sig) != 8+ed25519.SignatureSize || binary.BigEndian.Uint64(sig) > lastSecond {
			return false
		}
		text, sig = cosigned(binary.BigEndian.Uint64(sig), text), sig[8:]
	}
	return ed25519.Verify(v.public, text, sig)
}

// signedAt returns the time in a cosignature that was verified.
func signedAt(s note.Signature) (time.Time, bool) {
	raw, err := base64.StdEncoding.DecodeString(s.Base64)
	if err != nil || len(raw) != 4+8+ed25519.SignatureSize {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint64(raw[4:])), 0).UTC(), true // #nosec G115 -- Verify bounds it
}
