package query

import (
	"errors"
	"iter"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Story is what a log says of one request: its records, those beside them, and its connection.
type Story struct {
	Records    []Record // of the request, in order: the intent and its end, or one alone
	Connection *Record  // of the connection that it came on, nil if it has not ended
	Before     []Record // the records next to it
	After      []Record
	Bad        int // lines that are no records
}

// Bounds of a story: a log that was made up must not fill the memory.
const (
	MaxNeighbours = 100
	maxStoryOfOne = 100
)

// ErrNotFound means that the log has no record of the request.
var ErrNotFound = errors.New("no record has this id")

// Tell reads a log to its end and returns what it says of the request, with so many neighbours on each side.
func Tell(records iter.Seq2[Record, error], id string, neighbours int) (*Story, error) {
	return tell(records, neighbours, func(r Record) bool { return r.ID == id && r.Type != audit.TypeConnection && r.Type != audit.TypeLog })
}

// TellRecord is Tell for one record alone, by its number.
func TellRecord(records iter.Seq2[Record, error], seq uint64, neighbours int) (*Story, error) {
	return tell(records, neighbours, func(r Record) bool { return r.Seq == seq })
}

func tell(records iter.Seq2[Record, error], neighbours int, isOfIt func(Record) bool) (*Story, error) {
	s := &Story{}
	neighbours = max(0, min(neighbours, MaxNeighbours))
	var recent []Record // the last ones before the request
	for r, err := range records {
		bad := new(*BadLine)
		switch {
		case errors.As(err, bad):
			s.Bad++
			continue
		case err != nil:
			return nil, err
		}
		switch {
		case isOfIt(r):
			if len(s.Records) == 0 {
				s.Before, recent = recent, nil
			}
			if len(s.Records) < maxStoryOfOne {
				s.Records = append(s.Records, r.Keep())
			}
			s.After = s.After[:0] // neighbours are those of the last record
		case len(s.Records) == 0:
			if recent = append(recent, r.Keep()); len(recent) > neighbours {
				recent = recent[1:]
			}
		default:
			if s.connects(r) {
				kept := r.Keep()
				s.Connection = &kept
			}
			if len(s.After) < neighbours {
				s.After = append(s.After, r.Keep())
			}
		}
	}
	if len(s.Records) == 0 {
		return s, ErrNotFound
	}
	return s, nil
}

// connects says whether r is the record of the request's connection. It is written when that ends, so after the request's.
func (s *Story) connects(r Record) bool {
	if s.Connection != nil || r.Type != audit.TypeConnection || r.Corr == nil || r.Corr.Conn == "" {
		return false
	}
	of := s.Records[0]
	return of.Corr != nil && of.Corr.Conn == r.Corr.Conn
}
