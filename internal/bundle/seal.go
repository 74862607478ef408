package bundle

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	opa "github.com/open-policy-agent/opa/v1/bundle"
)

// Build makes the archive of a bundle, signed with key. Equal bundles and keys give equal bytes, except that another
// version of Go may compress otherwise. An error that is a Refusal for its size names the number of bytes.
func Build(b Bundle, key *Key) ([]byte, error) {
	b.IssuedAt, b.ExpiresAt = b.IssuedAt.UTC().Truncate(time.Second), b.ExpiresAt.UTC().Truncate(time.Second)
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("build a bundle: %w", err)
	}
	files, err := b.files()
	if err != nil {
		return nil, fmt.Errorf("build a bundle: %w", err)
	}
	token, err := sign(files, key)
	if err != nil {
		return nil, fmt.Errorf("build a bundle: %w", err)
	}
	if files[signaturesFile], err = encode(opa.SignaturesConfig{Signatures: []string{token}}); err != nil {
		return nil, fmt.Errorf("build a bundle: %w", err)
	}
	raw, err := pack(files)
	if err != nil {
		return nil, fmt.Errorf("build a bundle: %w", err)
	}
	if _, err := unpack(raw); err != nil { // what no node would take is not built
		return nil, fmt.Errorf("build a bundle: %w", err)
	}
	return raw, nil
}

// maxSignatures bounds the file of the signatures in bytes, which is parsed before anything is known to be signed. MaxFiles files with the longest names need less.
const maxSignatures = 512 << 10

// Seal says who signed a bundle, and identifies its content.
type Seal struct {
	// Key is the key that signed it.
	Key KeyID
	// Digest stands for the content with its metadata, however it was packed: 64 hexadecimal digits.
	Digest string
}

// Verify opens an archive that one of the keys has signed. It does not check the time, the audience and the revision: see Check and
// Keeper. An error is a Refusal.
func (k Keys) Verify(raw []byte) (Bundle, Seal, error) {
	files, err := unpack(raw)
	if err != nil {
		return Bundle{}, Seal{}, err
	}
	token, err := takeToken(files)
	if err != nil {
		return Bundle{}, Seal{}, err
	}
	s, err := k.verify(token)
	if err != nil {
		return Bundle{}, Seal{}, err
	}
	if err := s.fits(files); err != nil {
		return Bundle{}, Seal{}, err
	}
	b, err := fromFiles(files)
	if err != nil {
		return Bundle{}, Seal{}, refuse(ReasonContent, err)
	}
	return b, Seal{Key: s.key, Digest: fmt.Sprintf("%x", s.digest)}, nil
}

// takeToken takes the one signature from the files of an archive.
func takeToken(files map[string][]byte) (string, error) {
	text, ok := files[signaturesFile]
	if !ok {
		return "", refuse(ReasonUnsigned, errors.New("there are no signatures"))
	}
	delete(files, signaturesFile)
	if len(text) > maxSignatures {
		return "", refuse(ReasonUnsigned, fmt.Errorf("%s: %d bytes, and at most %d are taken", signaturesFile, len(text), maxSignatures))
	}
	var signatures opa.SignaturesConfig
	if err := decode(text, &signatures); err != nil {
		return "", refuse(ReasonUnsigned, fmt.Errorf("%s: %w", signaturesFile, err))
	}
	if signatures.Plugin != "" || len(signatures.Signatures) != 1 {
		return "", refuse(ReasonUnsigned, fmt.Errorf("%d signatures, plugin %q: want one of the common kind", len(signatures.Signatures), signatures.Plugin))
	}
	return signatures.Signatures[0], nil
}

// fits compares files with the signed list: the same names, the same content.
func (s signed) fits(files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(s.hashes)) {
		if _, ok := files[name]; !ok {
			return refuse(ReasonSignature, fmt.Errorf("%s is signed and not there", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		want, ok := s.hashes[name]
		if !ok {
			return refuse(ReasonUnsigned, fmt.Errorf("%s is not signed", name))
		}
		if subtle.ConstantTimeCompare([]byte(hashOf(files[name])), []byte(want)) != 1 {
			return refuse(ReasonSignature, fmt.Errorf("%s is not as it was signed", name))
		}
	}
	return nil
}

// Skew is how far the clock of a node may be behind that of the controller.
const Skew = 5 * time.Minute

// Check says whether a verified bundle is for this audience and time.
func (b Bundle) Check(audience string, now time.Time) error {
	switch {
	case b.Audience != audience:
		return refuse(ReasonAudience, fmt.Errorf("it is for %q, and this is %q", b.Audience, audience))
	case !now.Before(b.ExpiresAt):
		return refuse(ReasonExpired, fmt.Errorf("revision %d ended at %s, and it is %s", b.Revision, stamp(b.ExpiresAt), stamp(now)))
	case now.Add(Skew).Before(b.IssuedAt):
		return refuse(ReasonNotYet, fmt.Errorf("revision %d was issued at %s, and it is %s: is this clock right?", b.Revision, stamp(b.IssuedAt), stamp(now)))
	}
	return nil
}
