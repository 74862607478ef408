package segment

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// A record is encoded where Append was called, on as many processors as there are callers, with the longest number and a chain of the
// right length in it. The writer puts the real ones in: what a record is bounded to does not change by that.
var (
	numberless = `{"v":1,"seq":`
	headless   = numberless + strconv.FormatUint(math.MaxUint64, 10)
	chainless  = `,"prev":"` + strings.Repeat("A", 44) + "\"}\n"
)

// pending is a record that is waiting to be written, and its caller.
type pending struct {
	event audit.Event // what it points to is the caller's, who waits
	line  []byte
	class class
	room  int64      // that is kept free for it, of an end that a start writes
	echo  bool       // it ends an operation whose beginning no checkpoint covered
	tried bool       // a write of it has been begun, so that it may be on the disk
	told  chan news  // has room for one; after isDecided, seq and err are the caller's
	batch []*pending // memory for those that its caller leads

	seq  uint64
	leaf [32]byte
	err  error // why it is not in the log, nil if it is
}

// encode makes the line of an event.
func (p *pending) encode(session string, now func() time.Time) error {
	e := &p.event
	if e.Time.IsZero() {
		e.Time = now()
	}
	e.V, e.Session, e.Seq, e.Time = audit.Version, session, math.MaxUint64, e.Time.UTC()
	e.Prev = chainless[len(`,"prev":"`) : len(chainless)-len("\"}\n")]
	line, err := audit.Encode(p.line, *e)
	if err == nil {
		p.line = line
	}
	return err
}

// number appends the line to out with its number and the hash of the line before it. Out must not be empty: the byte before the line is
// lent to the hash, which begins with a zero.
func (p *pending) number(out []byte, seq uint64, previous [32]byte) []byte {
	start := len(out)
	out = append(out, numberless...)
	out = strconv.AppendUint(out, seq, 10)
	out = append(out, p.line[len(headless):len(p.line)-len(chainless)]...)
	out = append(out, `,"prev":"`...)
	out = base64.StdEncoding.AppendEncode(out, previous[:])
	out = append(out, '"', '}', '\n')
	lent := out[start-1]
	out[start-1] = 0
	p.seq, p.leaf = seq, sha256.Sum256(out[start-1:len(out)-1])
	out[start-1] = lent
	return out
}

// isIntent says whether the record admits an operation, which needs room for two records.
func (p *pending) isIntent() bool {
	return p.event.Type == audit.TypeRequest && p.event.Stage == audit.StageRequestReceived
}
