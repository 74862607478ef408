package query

// Ring keeps the last records of a stream.
type Ring struct {
	size    int
	records []Record
	next    int
}

// NewRing returns an empty Ring of at least 0 records.
func NewRing(size int) *Ring { return &Ring{size: max(0, size)} }

// Add takes a record, and forgets the oldest if there is no room.
func (r *Ring) Add(record Record) {
	switch {
	case r.size == 0:
	case len(r.records) < r.size:
		r.records = append(r.records, record.Keep())
	default:
		r.records[r.next] = record.Keep()
		r.next = (r.next + 1) % r.size
	}
}

// Len is how many records are kept.
func (r *Ring) Len() int { return len(r.records) }

// Records are those that are kept, the oldest first.
func (r *Ring) Records() []Record {
	return append(append([]Record{}, r.records[r.next:]...), r.records[:r.next]...)
}
