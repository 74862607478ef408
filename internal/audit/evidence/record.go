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

// digits cuts a decimal number without leading zeros.
func digits(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && i < 20 && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == 0 || i > 1 && b[0] == '0' {
		return 0, b, false
	}
	n, err := strconv.ParseUint(string(b[:i]), 10, 64)
	return n, b[i:], err == nil
}

// logFields is what records about the log say that verification compares with what it finds.
type logFields struct {
	Log struct {
		Segment         string `json:"segment"`
		PreviousSegment string `json:"previous_segment"`
		PreviousBytes   int64  `json:"previous_bytes"`
		TornBytes       int64  `json:"torn_bytes"`
		// PreviousTornHash is the SHA-256 of those bytes in hexadecimal digits, as they stood when the segment was begun.
		PreviousTornHash string   `json:"previous_torn_hash"`
		PreviousSeq      uint64   `json:"previous_seq"`
		Unsigned         uint64   `json:"unsigned"`
		Fault            string   `json:"fault"`
		Lost             uint64   `json:"lost"`
		Unwritten        uint64   `json:"unwritten"`
		Void             []string `json:"void"`
		VoidHeld         []string `json:"void_held"`
		Pruned           *struct {
			LastSeq uint64 `json:"last_seq"`
		} `json:"pruned"`
	} `json:"log"`
}

// logOf reads a record about the log. Names of fields are compared to the letter, as every reader does.
func (r *Record) logOf() (logFields, error) {
	var f logFields
	err := strictjson.UnmarshalCaseSensitivePreserveInts(r.Raw, &f)
	return f, err
}
