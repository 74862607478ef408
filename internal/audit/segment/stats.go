package segment

// Stats count what a Writer has done since it was opened.
type Stats struct {
	Seq      uint64 // the last durable record
	Open     int    // operations under way
	Segments int    // files of the log, the open one included
	Bytes    int64  // what they hold together
	Records  uint64 // durable
	Flushes  uint64
	Poisoned uint64 // segments given up after a failed write or flush
	Refused  uint64 // records that were not taken: a full or failing disk
	Lost     uint64 // records let go with Continue
	Pruned   uint64 // segments removed
	Overdue  uint64 // the last record that should have been removed and is kept for an operation under way that began before; 0 if there is none
	Err      error  // why no records of further operations are taken, nil while they are
	Unsigned error  // why the last checkpoint could not be made, nil if it was
	Unpruned error  // why what is too old or too much could not be removed the last time, nil if it was, or if nothing is
}

// count changes the figures.
func (l *log) count(change func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.stats)
	s := &l.stats
	s.Seq, s.Open, s.Segments, s.Bytes = l.seq, len(l.open), len(l.parts), l.held
	if l.file != nil {
		s.Segments++
		s.Bytes += l.at.bytes
	}
}
