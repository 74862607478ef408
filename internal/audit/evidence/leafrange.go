package evidence

import (
	"crypto/sha256"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Leaf returns the RFC 6962 leaf hash of one raw line, without its newline.
// https://www.rfc-editor.org/rfc/rfc6962#section-2.1
func Leaf(line []byte) tlog.Hash { return tlog.RecordHash(line) }

// LeafBehindZero is Leaf of a line that stands in memory behind a zero byte, with that byte: its hash needs no other memory.
func LeafBehindZero(text []byte) tlog.Hash { return sha256.Sum256(text) }

// node is the root of a whole subtree: the leaves index<<level up to (index+1)<<level.
type node struct {
	level int
	index uint64
	hash  tlog.Hash
}

// leafRange is what must be known of the leaves begin up to end, the latter excluded, to prove things about them: the roots of the fewest
// whole subtrees that cover them, at most two of each size. One that begins at 0 is a tree.
type leafRange struct {
	begin, end uint64
	nodes      []node
}

func (s *leafRange) append(leaf tlog.Hash) { s.push(node{0, s.end, leaf}) }

// push adds a subtree whose leaves begin where the range ends.
func (s *leafRange) push(n node) {
	s.end += 1 << n.level
	for len(s.nodes) > 0 {
		last := s.nodes[len(s.nodes)-1]
		if last.level != n.level || last.index%2 != 0 || last.index+1 != n.index {
			break
		}
		n = node{n.level + 1, n.index / 2, tlog.NodeHash(last.hash, n.hash)}
		s.nodes = s.nodes[:len(s.nodes)-1]
	}
	s.nodes = append(s.nodes, n)
}

// join adds the range that begins where this one ends.
func (s *leafRange) join(next leafRange) {
	for _, n := range next.nodes {
		s.push(n)
	}
}

func (s *leafRange) clone() leafRange {
	return leafRange{s.begin, s.end, append([]node(nil), s.nodes...)}
}

// root is the tree's root hash; only a range that begins at 0 has one.
func (s *leafRange) root() tlog.Hash {
	if len(s.nodes) == 0 {
		empty, _ := tlog.TreeHash(0, nil) // reads no hash, and cannot fail
		return empty
	}
	h := s.nodes[len(s.nodes)-1].hash
	for i := len(s.nodes) - 2; i >= 0; i-- {
		h = tlog.NodeHash(s.nodes[i].hash, h)
	}
	return h
}

// prefix is the tree of the first leaves of one, if whole subtrees of it cover them: of others, nothing is known.
func (s *leafRange) prefix(size uint64) (t leafRange, ok bool) {
	for i := range s.nodes {
		if t.end == size {
			break
		}
		t.nodes = s.nodes[:i+1]
		t.end += 1 << s.nodes[i].level
	}
	return t, t.end == size
}

// leafRangeOfHashes builds a range from the roots of the fewest whole subtrees that cover it, in order. ok is false if there are more or fewer.
func leafRangeOfHashes(begin, end uint64, hashes []tlog.Hash) (s leafRange, ok bool) {
	s = leafRange{begin: begin, end: begin}
	if end > MaxSize {
		return leafRange{}, false
	}
	for _, h := range hashes {
		if s.end >= end {
			return leafRange{}, false
		}
		level := min(bits.TrailingZeros64(s.end), bits.Len64(end-s.end)-1)
		s.push(node{level, s.end >> level, h})
	}
	return s, s.end == end
}

// subtrees is the inverse of leafRangeOfHashes.
func (s *leafRange) subtrees() []tlog.Hash {
	out := make([]tlog.Hash, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = n.hash
	}
	return out
}
