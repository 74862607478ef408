package segment

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxSeq is the largest number of a record. Sizes of trees then fit an int64, and no name claims a number that no log reaches.
const MaxSeq = 1 << 62

// Packed is what a reviewer's gzip puts behind the name of a segment.
const Packed = ".gz"

var namePattern = regexp.MustCompile(`^audit-([0-9]{20})-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.jsonl$`)

// Name returns a new name for the segment whose first record has the number first. It is final from the start: nothing
// is ever renamed, so a shipper sees each file under one name.
func Name(first uint64) string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // it ends the process rather than fail
	u[6] = u[6]&0x0F | 0x40
	u[8] = u[8]&0x3F | 0x80 // version 4, RFC 9562
	return fmt.Sprintf("audit-%020d-%x-%x-%x-%x-%x.jsonl", first, u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// ParseName returns the number of the first record of a segment from its name, 1 to MaxSeq; false means that it is no segment. The name of a
// packed copy is none: see ParseCopy.
func ParseName(name string) (first uint64, ok bool) {
	m := namePattern.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	first, err := strconv.ParseUint(m[1], 10, 64)
	return first, err == nil && first > 0 && first <= MaxSeq
}

// ParseCopy is ParseName for a file that may have been packed since. It also returns the name that its writer gave the segment.
func ParseCopy(name string) (given string, first uint64, ok bool) {
	given = strings.TrimSuffix(name, Packed)
	first, ok = ParseName(given)
	return given, first, ok
}
