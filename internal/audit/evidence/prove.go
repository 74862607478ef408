package evidence

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// MaxSize is the largest supported tree: a proof then has fewer than 63 hashes, and sizes fit an int64.
const MaxSize = segment.MaxSeq

// reader returns the subtrees in ranges to the functions that build proofs.
func reader(ranges ...leafRange) tlog.HashReader {
	known := map[int64]tlog.Hash{}
	for _, s := range ranges {
		for _, n := range s.nodes {
			known[tlog.StoredHashIndex(n.level, int64(n.index))] = n.hash // #nosec G115 -- below MaxSize
		}
	}
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, 0, len(indexes))
		for _, i := range indexes {
			h, ok := known[i]
			if !ok {
				return nil, fmt.Errorf("subtree %d is not known", i)
			}
			out = append(out, h)
		}
		return out, nil
	})
}

// proveGrowth returns the RFC 6962 consistency proof from the tree old to the tree that is old and grown.
func proveGrowth(old, grown leafRange) (tlog.TreeProof, error) {
	if old.end == 0 || old.end == grown.end {
		return nil, nil
	}
	return tlog.ProveTree(int64(grown.end), int64(old.end), reader(old, grown)) // #nosec G115 -- below MaxSize
}

// proveLeaf returns the RFC 6962 inclusion proof of the leaf between the tree before and the leaves after it.
func proveLeaf(before, after leafRange) (tlog.RecordProof, error) {
	return tlog.ProveRecord(int64(after.end), int64(before.end), reader(before, after)) // #nosec G115 -- below MaxSize
}
