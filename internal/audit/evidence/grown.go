package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// A witness asks how a log grew from the records that it cosigned last, which may be long ago if it was away. Once some of the records behind these are
// removed, their leaves are gone. So the proof of growth is kept in a file beside the key: the tree of the cosigned records, and the roots of the subtrees
// that cover those behind them.

// grownTitle is the first line of such a file.
const grownTitle = "pipeguard.dev/audit-grown/v1"

// maxGrown is more than such a file takes: three hashes for each bit of a number of records.
const maxGrown = 16 << 10

// growth is the tree of a log at one size, and the leaves from there up to another.
type growth struct{ before, after leafRange }

// format writes the title, the two sizes, the roots of the tree and, behind an empty line, of the leaves.
func (g *growth) format() []byte {
	out := fmt.Appendf(nil, "%s\n%d\n%d\n", grownTitle, g.before.end, g.after.end)
	out = append(appendHashes(out, g.before.subtrees()), '\n')
	return appendHashes(out, g.after.subtrees())
}

var errNotGrown = errors.New("not the growth of a log")

func parseGrowth(text []byte) (g growth, err error) {
	tree, leaves, ok := bytes.Cut(text, []byte("\n\n"))
	head := strings.SplitN(string(tree), "\n", 4)
	if !ok || len(head) < 4 || head[0] != grownTitle {
		return growth{}, errNotGrown
	}
	from, ok1 := parseNumber(head[1])
	to, ok2 := parseNumber(head[2])
	before, err1 := parseHashes(head[3] + "\n")
	after, err2 := parseHashes(string(leaves))
	if !ok1 || !ok2 || err1 != nil || err2 != nil {
		return growth{}, errNotGrown
	}
	g.before, ok1 = leafRangeOfHashes(0, from, before)
	g.after, ok2 = leafRangeOfHashes(from, to, after)
	if !ok1 || !ok2 {
		return growth{}, errNotGrown
	}
	return g, nil
}

// since is how the log grew from a size to a checkpoint: from memory, from the log, or from the file beside the key.
func (l *Log) since(ctx context.Context, old uint64, head Head) (growth, error) {
	l.mu.Lock()
	before, after, ok := l.history.between(old, head.Size)
	l.mu.Unlock()
	if ok {
		return growth{before, after}, nil
	}
	before, after, err := leafRangeOf(ctx, l.o.Dir, head, old, head.Size)
	if err == nil {
		return growth{before, after}, nil
	}
	g, kept := readGrown(l.o.Grown)
	if kept != nil || g.before.end != old || g.after.end > head.Size {
		return growth{}, err
	}
	rest, kept := leavesOf(ctx, l.o.Dir, head, g.after.end, head.Size)
	if kept != nil {
		return growth{}, err
	}
	g.after.join(rest)
	if proof, kept := proveGrowth(g.before, g.after); kept != nil || tlog.CheckTree(proof, int64(head.Size), head.Root, int64(old), g.before.root()) != nil { // #nosec G115 -- below MaxSize
		return growth{}, fmt.Errorf("%w, and %s is of another log", err, l.o.Grown)
	}
	return g, nil
}

// keepGrown stores how the log grew since the records that the witness cosigned last, unless it has cosigned more since.
func (l *Log) keepGrown(g growth) {
	if l.o.Grown == "" {
		return
	}
	l.growing.Lock()
	defer l.growing.Unlock()
	l.mu.Lock()
	isOld := g.before.end < l.cosigned
	l.mu.Unlock()
	if isOld {
		return
	}
	err := replace(l.o.Grown, g.format())
	l.mu.Lock()
	isNew := err != nil && !l.isUngrown
	l.cosigned, l.isUngrown = g.before.end, err != nil
	l.mu.Unlock()
	if isNew {
		l.o.OnFault(fmt.Errorf("the proof of the audit log's growth cannot be stored, so the witness may refuse the log once records are removed: %w", err))
	}
}

// wasCosigned keeps the tree that the witness has cosigned: it will ask how the log grew from there.
func (l *Log) wasCosigned(head Head) {
	l.mu.Lock()
	tree, none, ok := l.history.between(head.Size, head.Size)
	l.mu.Unlock()
	if ok {
		l.keepGrown(growth{tree, none})
	}
}

// growBehind stores the proof of growth that is needed once the records up to last are gone, if the witness has cosigned fewer.
func (l *Log) growBehind(ctx context.Context, last uint64) {
	l.mu.Lock()
	old := l.cosigned
	l.mu.Unlock()
	if old == 0 || old >= last {
		return
	}
	head, err := l.signedTo(ctx, last)
	var g growth
	if err == nil {
		g, err = l.since(ctx, old, head)
	}
	switch {
	case ctx.Err() != nil: // the records will not be removed either
		return
	case err != nil:
		l.mu.Lock()
		l.cosigned = 0 // reported once
		l.mu.Unlock()
		l.o.OnFault(fmt.Errorf("the witness cosigned %d records last, and the growth of the log since then cannot be proven once records up to %d are removed: %w", old, last, err))
		return
	}
	l.keepGrown(g)
}

// signedTo returns the last checkpoint, of size records at least.
func (l *Log) signedTo(ctx context.Context, size uint64) (Head, error) {
	l.signing.Lock()
	head := l.signed
	l.signing.Unlock()
	if head.Size >= size {
		return head, nil
	}
	if err := l.Checkpoint(ctx); err != nil {
		return Head{}, err
	}
	l.signing.Lock()
	defer l.signing.Unlock()
	if l.signed.Size < size {
		return Head{}, fmt.Errorf("record %d is the last one", l.signed.Size)
	}
	return l.signed, nil
}

func readGrown(file string) (growth, error) {
	if file == "" {
		return growth{}, os.ErrNotExist
	}
	text, err := readRegular(file, maxGrown)
	if err != nil {
		return growth{}, err
	}
	return parseGrowth(text)
}
