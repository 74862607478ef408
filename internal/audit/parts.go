package audit

import "os"

// Encode returns one record as a line of JSON of at most MaxRecord bytes with its newline, in the memory of dst if there
// is room. A longer event is shortened, each cut leaving a mark in its place. For writers in other packages.
func Encode(dst []byte, e Event) ([]byte, error) { return encode(dst, e) }

// Lock takes the file for this process until it is closed, or returns ErrInUse.
func Lock(file *os.File) error { return lock(file) }

// Parse returns the record of a line, given without its newline: one object, no unknown field, nothing after it.
func Parse(line []byte) (Event, error) { return parse(line) }
