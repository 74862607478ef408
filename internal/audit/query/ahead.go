package query

import (
	"io"
	"sync"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Bounds of a batch of lines.
const (
	batchLines = 256
	batchBytes = 256 << 10
)

// ahead is a feed that reads lines before they are asked for, and judges them on several processors. It returns them one by one in their order, as segment.Lines does:
// what is made of them, one after the other, is decided by lines alone.
type ahead struct {
	file    *segment.Lines
	judge   judge
	work    chan *batch // to be judged, in any order
	ordered chan *batch // in the order of their lines
	free    chan *batch // to be filled
	stop    chan struct{}
	closing sync.Once
	running sync.WaitGroup

	now *batch
	at  int // the line of now that was returned last
}

// batch are consecutive lines.
type batch struct {
	text   []byte // of all lines, one behind the other, each behind a zero byte
	lines  []lineAhead
	lent   []audit.Memory // for each line, if events are lent
	judged chan struct{}  // is sent to when all are judged
}

// lineAhead is what segment.Lines says of a line once it has returned it.
type lineAhead struct {
	begin, end int // in the text of the batch
	err        error
	number     int
	offset     int64 // of the line in its file
	size       int
	isWhole    bool
	hasNUL     bool
	judged     judged
}

// readAhead reads with so many judges. The feed must be closed before anything else is read from r.
func readAhead(j judge, r io.Reader, judges int) *ahead {
	count := 2*judges + 2
	a := &ahead{
		file: segment.NewLines(r, 8*audit.MaxRecord, segment.MaxLost), judge: j,
		work: make(chan *batch, count), ordered: make(chan *batch, count), free: make(chan *batch, count), stop: make(chan struct{}),
	}
	for range count {
		a.free <- &batch{judged: make(chan struct{}, 1)}
	}
	a.running.Go(a.read)
	for range judges {
		a.running.Go(a.judgeAll)
	}
	return a
}

// close ends the reading, and returns when nothing is read any more. The line that was returned last stays known.
func (a *ahead) close() {
	a.closing.Do(func() { close(a.stop) })
	a.running.Wait()
}

// read fills batches until the first line after which segment.Lines must not be asked again, or need not be.
func (a *ahead) read() {
	defer close(a.ordered)
	defer close(a.work)
	for goesOn := true; goesOn; {
		var b *batch
		select {
		case b = <-a.free:
		case <-a.stop:
			return
		}
		goesOn = b.fill(a.file)
		a.work <- b // there is room for all batches
		a.ordered <- b
	}
}

func (b *batch) fill(file *segment.Lines) (goesOn bool) {
	b.text, b.lines = b.text[:0], b.lines[:0]
	for len(b.lines) < batchLines && len(b.text) < batchBytes {
		text, err := file.Next()
		b.text = append(b.text, 0)
		l := lineAhead{begin: len(b.text), err: err, number: file.Number(), offset: file.Begin(), size: file.Size(), isWhole: file.IsWhole(), hasNUL: file.HasNUL()}
		b.text = append(b.text, text...)
		l.end = len(b.text)
		b.lines = append(b.lines, l)
		if !l.isWhole {
			return false
		}
	}
	return true
}

func (a *ahead) judgeAll() {
	j := a.judge
	j.memory = &audit.Memory{}
	for b := range a.work {
		text := ""
		if j.wanted.Has != nil { // one copy for all lines
			text = string(b.text)
		}
		if j.wanted.Lends && b.lent == nil {
			b.lent = make([]audit.Memory, batchLines)
		}
		for i := range b.lines {
			if l := &b.lines[i]; l.err == nil {
				if j.wanted.Lends {
					j.memory = &b.lent[i]
				}
				leaf := hash(evidence.LeafBehindZero(b.text[l.begin-1 : l.end]))
				l.judged = j.line(l.number, b.text[l.begin:l.end], text[min(l.begin, len(text)):min(l.end, len(text))], leaf)
			}
		}
		b.judged <- struct{}{}
	}
}

// Next is that of segment.Lines. After its error, but for audit.ErrTooLong, it must not be called again.
func (a *ahead) Next() ([]byte, error) {
	if a.at++; a.now == nil || a.at == len(a.now.lines) {
		if a.now != nil {
			a.free <- a.now
		}
		a.now, a.at = <-a.ordered, 0
		<-a.now.judged
	}
	l := a.line()
	return a.now.text[l.begin:l.end], l.err
}

// line is the one that was returned last.
func (a *ahead) line() *lineAhead {
	if a.now == nil {
		return &lineAhead{}
	}
	return &a.now.lines[a.at]
}

// Number, Begin, Size, End, IsWhole and HasNUL are those of segment.Lines.
func (a *ahead) Number() int   { return a.line().number }
func (a *ahead) Begin() int64  { return a.line().offset }
func (a *ahead) Size() int     { return a.line().size }
func (a *ahead) End() int64    { return a.line().offset + int64(a.line().size) }
func (a *ahead) IsWhole() bool { return a.line().isWhole }
func (a *ahead) HasNUL() bool  { return a.line().hasNUL }
