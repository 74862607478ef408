package evidence

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// proofTitle is the first line of a proof. https://c2sp.org/tlog-proof
const proofTitle = "c2sp.org/tlog-proof@v1"

// Proved is a record that a proof shows to be in a log.
type Proved struct {
	Checkpoint
	Seq    uint64
	Record []byte // the raw line
}

// Prove returns the proof that a record is in the log in dir, as the text of a C2SP tlog-proof with the record itself as extra data. It is of the
// newest checkpoint beside the log or in one of the files outside that the keys verify.
func Prove(ctx context.Context, o VerifyOptions, seq uint64) ([]byte, error) {
	if seq == 0 || o.Dir == "" {
		return nil, errors.New("prove a record: name a directory and a record by its number, counted from 1")
	}
	v := newVerification(o)
	v.keepRaw = true
	_, strays, err := segment.List(o.Dir)
	if err := errors.Join(err, v.reportStrays(strays), v.find(), v.collect()); err != nil {
		return nil, fmt.Errorf("prove record %d: %w", seq, err)
	}
	if len(v.expect) == 0 || v.expect[len(v.expect)-1].Size < seq {
		return nil, fmt.Errorf("prove record %d: no checkpoint that the keys verify covers it", seq)
	}
	c := v.expect[len(v.expect)-1]
	record, before, behind, err := split(ctx, o.Dir, seq, c.Size)
	if err != nil {
		return nil, fmt.Errorf("prove record %d: %w", seq, err)
	}
	tree := before.clone()
	tree.append(Leaf(record))
	tree.join(behind)
	if tree.root() != c.Root {
		return nil, fmt.Errorf("prove record %d: %w", seq, &Fault{c.file, c.line, seq, "the checkpoint signs another log"})
	}
	proof, err := proveLeaf(before, behind)
	if err != nil {
		return nil, fmt.Errorf("prove record %d: %w", seq, err)
	}
	out := fmt.Appendf(nil, "%s\nextra %s\nindex %d\n", proofTitle, base64.StdEncoding.EncodeToString(record), seq-1)
	out = append(append(appendHashes(out, proof), '\n'), c.Raw...)
	_, err = CheckProof(out, o.Keys) // so that no invalid proof is returned
	return out, err
}

// split reads a record, the tree before it, and the leaves behind it up to the size of a checkpoint, as a reader reads a log.
func split(ctx context.Context, dir string, seq, size uint64) (record []byte, before, behind leafRange, err error) {
	if before, err = readStart(filepath.Join(dir, StartFile)); err != nil {
		return nil, leafRange{}, leafRange{}, err
	}
	behind = leafRange{begin: seq, end: seq}
	w := &walk{visit: func(r *Record) error {
		switch {
		case r.Seq < seq && r.Seq == before.end+1:
			before.append(r.Leaf)
		case r.Seq == seq:
			record = bytes.Clone(r.Raw)
		case r.Seq > size:
			return errDone
		case r.Seq > seq:
			behind.append(r.Leaf)
		}
		return nil
	}}
	first, err := w.list(ctx, dir)
	if err == nil {
		if first == 1 {
			before = leafRange{}
		}
		err = w.run(ctx)
	}
	if err != nil && !errors.Is(err, errDone) {
		return nil, leafRange{}, leafRange{}, err
	}
	if record == nil || before.end != seq-1 || behind.end != size {
		return nil, leafRange{}, leafRange{}, errors.New("the log no longer holds it")
	}
	return record, before, behind, nil
}

// CheckProof verifies a proof that carries its record. It needs no log.
func CheckProof(text []byte, keys Keys) (Proved, error) {
	header, checkpoint, ok := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(header), "\n")
	if !ok || len(lines) < 3 || lines[0] != proofTitle {
		return Proved{}, errors.New("not a proof with its record (" + proofTitle + ")")
	}
	extra, ok1 := strings.CutPrefix(lines[1], "extra ")
	record, err1 := base64.StdEncoding.Strict().DecodeString(extra)
	number, ok2 := strings.CutPrefix(lines[2], "index ")
	index, isNumber := parseNumber(number)
	if !ok1 || !ok2 || err1 != nil || !isNumber || len(lines)-3 > maxProof {
		return Proved{}, errors.New("not a proof with its record: lines 2 and 3 are extra and index")
	}
	path, err := parseHashes(strings.Join(lines[3:], "\n"))
	if err != nil {
		return Proved{}, fmt.Errorf("proof: %w", err)
	}
	c, err := keys.Open(checkpoint)
	if err != nil {
		return Proved{}, fmt.Errorf("proof: %w", err)
	}
	if index >= c.Size {
		return Proved{}, fmt.Errorf("proof: record %d is not among the checkpoint's %d", index+1, c.Size)
	}
	if err := tlog.CheckRecord(path, int64(c.Size), c.Root, int64(index), Leaf(record)); err != nil { // #nosec G115 -- below MaxSize
		return Proved{}, fmt.Errorf("proof: %w", err)
	}
	return Proved{c, index + 1, record}, nil
}
