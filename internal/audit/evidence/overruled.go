package evidence

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Overruled are whole records that continue the log and that the next segment declares torn: they are no part of the log, and no command shows them. A write that failed leaves
// such records, which were never acknowledged. An attacker who wants acknowledged records out of a log that is not yet signed adds a segment that declares the same.
type Overruled struct {
	File  string `json:"file"`
	First uint64 `json:"first"` // the first of them has the number of the record that declares them torn
	Last  uint64 `json:"last"`
	By    string `json:"by"` // the segment of that record
	// Unsigned says that nothing shows who declared them torn: no keys were given, or the process that wrote that record did not sign it.
	Unsigned bool `json:"unsigned"`
}

func (o Overruled) String() string {
	what := fmt.Sprintf("%d whole records that continue record %d of %s were", o.Last-o.First+1, o.First-1, filepath.Base(o.File))
	if o.First == o.Last {
		what = fmt.Sprintf("1 whole record that continues record %d of %s was", o.First-1, filepath.Base(o.File))
	}
	why := "which its own process signed: a write failed, or they were added behind the end of the log"
	if o.Unsigned {
		why = "and nothing shows that its own process signed that: a write failed, or an attacker added it to take them out of the log"
	}
	return fmt.Sprintf("%s declared torn by %s, %s", what, filepath.Base(o.By), why)
}

// CountRecords counts the whole records at the beginning of r that continue a log, given the number and the hash of its last record.
func CountRecords(r io.Reader, seq uint64, leaf string) (n uint64, err error) {
	err = segment.Scan(r, func(line []byte, _ int64) bool {
		p, _, err := segment.PlaceOf(line)
		if err != nil || p.Seq != seq+1 || string(p.Prev) != leaf {
			return false
		}
		n, seq, leaf = n+1, p.Seq, Leaf(line).String()
		return true
	})
	return n, err
}
