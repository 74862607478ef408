package witnesstest

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// Records are the hashes of records that many simulated logs share: to make them is no part of what is measured.
type Records struct{ hashes []tlog.Hash }

// NewRecords makes so many records.
func NewRecords(tb testing.TB, count int) *Records {
	tb.Helper()
	r := &Records{}
	for i := range count {
		more, err := tlog.StoredHashes(int64(i), strconv.AppendInt(nil, int64(i), 10), r)
		if err != nil {
			tb.Fatal(err)
		}
		r.hashes = append(r.hashes, more...)
	}
	return r
}

// ReadHashes implements tlog.HashReader.
func (r *Records) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		out[i] = r.hashes[at]
	}
	return out, nil
}

// Simulated is a log without files. It signs as the log of a Node does.
type Simulated struct {
	tb      testing.TB
	records *Records
	key     *evidence.Key
	private ed25519.PrivateKey
	log     note.Signer
	id      uint32 // of the key that signs times
	size    int64
}

// NewSimulated makes the log of a node.
func NewSimulated(tb testing.TB, name string, records *Records) *Simulated {
	tb.Helper()
	s := &Simulated{tb: tb, records: records, key: NewKey(tb, evidence.Origin(name))}
	secret := strings.TrimSpace(string(s.key.Secret()))
	var err error
	if s.log, err = note.NewSigner(secret); err != nil {
		tb.Fatal(err)
	}
	seed, err := base64.StdEncoding.DecodeString(strings.SplitN(secret, "+", 5)[4])
	if err != nil {
		tb.Fatal(err)
	}
	s.private = ed25519.NewKeyFromSeed(seed[1:])
	id, err := strconv.ParseUint(strings.Split(s.key.WitnessKey(), "+")[1], 16, 32)
	if err != nil {
		tb.Fatal(err)
	}
	s.id = uint32(id) // #nosec G115 -- of 32 bits
	return s
}

// Key is the log's.
func (s *Simulated) Key() *evidence.Key { return s.key }

// Grow adds records and returns the checkpoint behind them, signed at a time.
func (s *Simulated) Grow(records int, at time.Time) evidence.Copy {
	s.tb.Helper()
	s.size += int64(records)
	size := s.size
	root, err := tlog.TreeHash(size, s.records)
	if err != nil {
		s.tb.Fatal(err)
	}
	text := fmt.Sprintf("%s\n%d\n%s\n", s.key.Name(), size, root)
	raw, err := note.Sign(&note.Note{Text: text}, s.log, timed{s, at})
	if err != nil {
		s.tb.Fatal(err)
	}
	return evidence.Copy{
		Head: evidence.Head{Origin: s.key.Name(), Size: uint64(size), Root: root}, Raw: raw, // #nosec G115 -- not negative
		Cosigned: func() {},
		Prove: func(_ context.Context, old uint64) (tlog.TreeProof, error) {
			if old == 0 || int64(old) == size { // #nosec G115 -- below size
				return nil, nil
			}
			return tlog.ProveTree(size, int64(old), s.records) // #nosec G115 -- below size
		},
	}
}

// timed signs a text together with a time. https://c2sp.org/tlog-cosignature
type timed struct {
	*Simulated
	at time.Time
}

func (t timed) Name() string    { return t.key.Name() }
func (t timed) KeyHash() uint32 { return t.id }

func (t timed) Sign(text []byte) ([]byte, error) {
	message := append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", t.at.Unix()), text...)
	out := binary.BigEndian.AppendUint64(nil, uint64(t.at.Unix())) // #nosec G115 -- after 1970
	return append(out, ed25519.Sign(t.private, message)...), nil
}
