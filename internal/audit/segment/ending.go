package segment

import (
	"encoding/json"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// MaxLost bounds what a crash can have spoiled at the end of a log, in bytes.
const MaxLost = maxBatch + 4*audit.MaxRecord

// MaxTorn bounds how many bytes behind the last record of a segment are read for their hash: more than any writer leaves there.
const MaxTorn = 16 * MaxLost

// ParseLine returns what places a line without its newline in a log: its number and the hash of the line before. False means that it is no
// record that this package wrote. Whoever decides where a log ends decides by this.
func ParseLine(line []byte) (seq uint64, prev string, ok bool) {
	h, ok := parseHead(line)
	return h.seq, h.prev, ok && json.Valid(line)
}
