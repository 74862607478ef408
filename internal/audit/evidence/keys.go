package evidence

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Keys are public keys of logs and witnesses. The zero value knows none.
type Keys struct{ all []verifier }

// maxKeys bounds a key file; each signature is looked up by name and hash, so the number costs nothing else.
const maxKeys = 10_000

// ParseKeys reads verifier keys as signed notes have them, name+hash+base64, one a line. Empty lines and lines that begin with # are
// skipped. During a rotation the file holds the old key and then the new one: the keys of a log stand in the order in which they replaced each other.
// Type 01 is a log's key, type 04 a witness's.
func ParseKeys(text string) (Keys, error) {
	var keys Keys
	var faults []error
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		v, err := parseVerifier(line)
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", number+1, err))
			continue
		}
		if !slices.ContainsFunc(keys.all, v.equal) {
			keys.all = append(keys.all, v)
		}
	}
	if len(faults) == 0 && len(keys.all) == 0 {
		faults = append(faults, errors.New("no verifier key"))
	}
	if len(keys.all) > maxKeys {
		faults = append(faults, fmt.Errorf("%d keys, at most %d are read", len(keys.all), maxKeys))
	}
	if len(faults) > 0 {
		if more := len(faults) - maxNamed; more > 0 { // a file of another kind has nothing else
			faults = append(faults[:maxNamed], fmt.Errorf("and %d more lines", more))
		}
		return Keys{}, errors.Join(faults...)
	}
	return keys, nil
}

// parseVerifier reads one verifier key. An error does not repeat the line: the file may be one of private keys.
func parseVerifier(line string) (verifier, error) {
	if strings.HasPrefix(line, "PRIVATE+KEY+") {
		return verifier{}, errors.New("a private key, which does not belong in a file of verifier keys")
	}
	parts := strings.SplitN(line, "+", 3)
	if len(parts) != 3 || !isName(parts[0]) || len(parts[1]) != 8 {
		return verifier{}, errors.New("not a verifier key (name+hash+base64)")
	}
	hash, err1 := strconv.ParseUint(parts[1], 16, 32)
	raw, err2 := base64.StdEncoding.DecodeString(parts[2])
	if err1 != nil || err2 != nil || len(raw) != 1+ed25519.PublicKeySize {
		return verifier{}, errors.New("not a verifier key (name+hash+base64)")
	}
	v := verifier{parts[0], raw[0], raw[1:]}
	if v.alg != algLog && v.alg != algCosign {
		return verifier{}, fmt.Errorf("signature type %#02x is not known, only 0x01 and 0x04", v.alg)
	}
	if uint32(hash) != v.KeyHash() { // #nosec G115 -- parsed with 32 bits
		return verifier{}, errors.New("the hash in the verifier key is not that of its name and key")
	}
	return v, nil
}

// as verifies signatures of another type by the same key.
func (v verifier) as(alg byte) verifier { return verifier{v.name, alg, v.public} }

func (v verifier) equal(w verifier) bool {
	return v.name == w.name && v.alg == w.alg && v.public.Equal(w.public)
}

// maxNamed bounds how many invalid lines, or reasons of one kind, are named.
const maxNamed = 3

// And returns the keys of both.
func (k Keys) And(more Keys) Keys {
	all := slices.Clone(k.all)
	for _, v := range more.all {
		if !slices.ContainsFunc(all, v.equal) {
			all = append(all, v)
		}
	}
	return Keys{all}
}

// Describe returns a line for each key: its type, name, and hash.
func (k Keys) Describe() []KeyInfo {
	out := make([]KeyInfo, 0, len(k.all))
	for _, v := range k.all {
		kind := "log"
		if v.alg == algCosign {
			kind = "witness"
		}
		out = append(out, KeyInfo{kind, v.name, fmt.Sprintf("%08x", v.KeyHash()), v.String()})
	}
	return out
}

// HasWitness says whether one of the keys is a witness's.
func (k Keys) HasWitness() bool {
	return slices.ContainsFunc(k.all, func(v verifier) bool { return v.alg == algCosign })
}

// KeyInfo describes a public key.
type KeyInfo struct {
	Kind string // log or witness
	Name string
	Hash string
	Key  string
}

// Origins returns the names of the logs whose keys these are.
func (k Keys) Origins() []string {
	var out []string
	for _, v := range k.all {
		if v.alg == algLog && !slices.Contains(out, v.name) {
			out = append(out, v.name)
		}
	}
	return out
}

// rank is the place of a log's key among all, from 1, by its id or the one that it signs the time with; 0 if it is none of them.
func (k Keys) rank(origin string, hash uint32) int {
	return 1 + slices.IndexFunc(k.all, func(v verifier) bool {
		return v.alg == algLog && v.name == origin && (v.KeyHash() == hash || v.as(algCosign).KeyHash() == hash)
	})
}

// newest returns the place of the key that replaced the others of a log, as rank does, and its id.
func (k Keys) newest(origin string) (rank int, hash uint32) {
	for i, v := range k.all {
		if v.alg == algLog && v.name == origin {
			rank, hash = i+1, v.KeyHash()
		}
	}
	return rank, hash
}

// of returns what verifies notes of one origin: the keys of the log, each also for the time that the log signs with, and of all witnesses.
func (k Keys) of(origin string) note.Verifiers {
	var list []note.Verifier
	for _, v := range k.all {
		switch {
		case v.alg == algLog && v.name == origin:
			list = append(list, v, v.as(algCosign))
		case v.alg == algCosign && v.name != origin: // a log does not witness itself
			list = append(list, v)
		}
	}
	return note.VerifierList(list...)
}
