package segment

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strconv"
)

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

// ParseName returns the number of the first record of a segment from its name; false means that it is no segment.
func ParseName(name string) (first uint64, ok bool) {
	m := namePattern.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	first, err := strconv.ParseUint(m[1], 10, 64)
	return first, err == nil && first > 0
}
