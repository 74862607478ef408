package evidence

import (
	"strconv"

	"golang.org/x/mod/sumdb/tlog"
	strictjson "sigs.k8s.io/json"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Record is one line of a log, as far as its place in the log goes.
type Record struct {
	File  string
	Line  int // counted from 1
	Seq   uint64
	Leaf  tlog.Hash
	Raw   []byte // without the newline; valid until the next record
	prev  []byte
	isLog bool // about the log itself
	stage string
	// isOrphan says that it ends the intent of a process that is gone.
	isOrphan bool
}

// parseRecord finds number, type, stage and the hash of the record before. Records have a fixed order of fields, so nothing else is read: what a
// record says is no matter of whether it was changed.
func parseRecord(raw []byte, r *Record) error {
	p, _, err := segment.PlaceOf(raw)
	if err != nil {
		return err
	}
	r.Seq, r.Raw, r.prev = p.Seq, raw, p.Prev
	r.isLog = string(p.Kind) == string(audit.TypeLog)
	r.stage = ""
	if r.isLog {
		r.stage = string(p.Stage)
	}
	r.isOrphan = !r.isLog && string(p.Stage) == string(audit.StageOrphaned)
	r.Leaf = Leaf(raw)
	return nil
}

// parseNumber reads a decimal number without leading zeros.
func parseNumber(text string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == text
}

// logOf is what a record about the log says of it. Names of fields are compared to the letter, as every reader does.
func (r *Record) logOf() (audit.Log, error) {
	var f struct {
		Log audit.Log `json:"log"`
	}
	err := strictjson.UnmarshalCaseSensitivePreserveInts(r.Raw, &f)
	return f.Log, err
}
