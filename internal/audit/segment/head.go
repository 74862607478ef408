package segment

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Leaf returns the RFC 6962 leaf hash of a record: of its raw line without the newline.
func Leaf(line []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(line)
	return [32]byte(h.Sum(nil))
}

// head is what the writer needs to know of a line, at the places where this version writes it. The texts are as in the line, escapes included.
type head struct {
	seq, intentSeq                 uint64
	kind, stage, session, id, prev string
}

// Place is the position in the log that a line claims. Its slices are parts of the line.
type Place struct {
	Version, Seq uint64
	Kind, Stage  []byte // type and stage
	Prev         []byte // the hash of the record before, in base64
}

var (
	errNoRecord = errors.New("not a record: it does not begin with version, number, type and stage")
	errNoPrev   = errors.New("not a record: it does not end with the hash of the record before")
)

// PrevLength is the length of the hash of a record in the next one: 32 bytes in base64.
const PrevLength = 44

// maxWord bounds type and stage in bytes.
const maxWord = 64

// PlaceOf reads the beginning and the end of a line without its newline, where each record says where it stands, and returns what is between them. It
// alone decides whether a line is a record, of any version.
func PlaceOf(line []byte) (p Place, between []byte, err error) {
	r := headReader{rest: line}
	r.skip(`{"v":`)
	p.Version = r.number()
	r.skip(`,"seq":`)
	p.Seq = r.number()
	r.skip(`,"type":`)
	p.Kind = r.word()
	r.skip(`,"stage":`)
	p.Stage = r.word()
	if r.failed || p.Seq == 0 || p.Seq > MaxSeq {
		return Place{}, nil, errNoRecord
	}
	at := len(r.rest) - len(`,"prev":""}`) - PrevLength
	if at < 0 {
		return Place{}, nil, errNoPrev
	}
	end := headReader{rest: r.rest[at:]}
	end.skip(`,"prev":`)
	p.Prev = end.bytes()
	end.skip(`}`)
	if end.failed || len(p.Prev) != PrevLength {
		return Place{}, nil, errNoPrev
	}
	return p, r.rest[:at], nil
}

// parseHead reads a line without its newline. False means that it is no record that this package wrote.
func parseHead(line []byte) (h head, ok bool) {
	p, between, err := PlaceOf(line)
	if err != nil || p.Version != audit.Version {
		return head{}, false
	}
	h.seq, h.kind, h.stage, h.prev = p.Seq, string(p.Kind), string(p.Stage), string(p.Prev)
	r := headReader{rest: between}
	r.skip(`,"time":`)
	r.bytes()
	r.skip(`,"session":`)
	h.session = string(r.bytes())
	r.skip(`,"id":`)
	h.id = string(r.bytes())
	if bytes.HasPrefix(r.rest, []byte(`,"intent_seq":`)) {
		r.skip(`,"intent_seq":`)
		h.intentSeq = r.number()
	}
	return h, !r.failed
}

// recordStart is what each record begins with.
const recordStart = `{"v":1,"seq":`

type headReader struct {
	rest   []byte
	failed bool
}

func (r *headReader) skip(s string) {
	if r.failed = r.failed || !bytes.HasPrefix(r.rest, []byte(s)); !r.failed {
		r.rest = r.rest[len(s):]
	}
}

// number reads a decimal number without leading zeros.
func (r *headReader) number() (v uint64) {
	n := 0
	for ; n < len(r.rest) && r.rest[n] >= '0' && r.rest[n] <= '9'; n++ {
		d := uint64(r.rest[n] - '0')
		r.failed = r.failed || v > (math.MaxUint64-d)/10
		v = 10*v + d
	}
	r.failed = r.failed || n == 0 || n > 1 && r.rest[0] == '0'
	r.rest = r.rest[n:]
	return v
}

// word reads a short text without escapes.
func (r *headReader) word() []byte {
	b := r.bytes()
	r.failed = r.failed || len(b) > maxWord || bytes.IndexByte(b, '\\') >= 0
	return b
}

// bytes reads a text, and returns it as it stands there, escapes included.
func (r *headReader) bytes() []byte {
	if r.skip(`"`); r.failed {
		return nil
	}
	for i := 0; i < len(r.rest); i++ {
		switch r.rest[i] {
		case '\\':
			i++
		case '"':
			b := r.rest[:i]
			r.rest = r.rest[i+1:]
			return b
		}
	}
	r.failed = true
	return nil
}

func encodeLeaf(leaf [32]byte) string { return base64.StdEncoding.EncodeToString(leaf[:]) }
