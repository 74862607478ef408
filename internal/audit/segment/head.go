package segment

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
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

const prevLen = len(`,"prev":""}`) + 44 // base64 of 32 bytes

// parseHead reads a line without its newline. False means that it is no record that this package wrote.
func parseHead(line []byte) (h head, ok bool) {
	r := headReader{rest: line}
	r.skip(recordStart)
	h.seq = r.number()
	r.skip(`,"type":`)
	h.kind = r.text()
	r.skip(`,"stage":`)
	h.stage = r.text()
	r.skip(`,"time":`)
	r.text()
	r.skip(`,"session":`)
	h.session = r.text()
	r.skip(`,"id":`)
	h.id = r.text()
	if bytes.HasPrefix(r.rest, []byte(`,"intent_seq":`)) {
		r.skip(`,"intent_seq":`)
		h.intentSeq = r.number()
	}
	if r.failed || h.seq == 0 || len(r.rest) < prevLen {
		return head{}, false
	}
	end := headReader{rest: r.rest[len(r.rest)-prevLen:]}
	end.skip(`,"prev":`)
	h.prev = end.text()
	end.skip(`}`)
	return h, !end.failed && len(end.rest) == 0 && len(h.prev) == 44
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

func (r *headReader) number() uint64 {
	n := 0
	for n < len(r.rest) && r.rest[n] >= '0' && r.rest[n] <= '9' {
		n++
	}
	v, err := strconv.ParseUint(string(r.rest[:n]), 10, 64)
	r.failed = r.failed || err != nil
	r.rest = r.rest[n:]
	return v
}

func (r *headReader) text() string {
	if r.skip(`"`); r.failed {
		return ""
	}
	for i := 0; i < len(r.rest); i++ {
		switch r.rest[i] {
		case '\\':
			i++
		case '"':
			s := string(r.rest[:i])
			r.rest = r.rest[i+1:]
			return s
		}
	}
	r.failed = true
	return ""
}

func encodeLeaf(leaf [32]byte) string { return base64.StdEncoding.EncodeToString(leaf[:]) }
