package auditcmd

import (
	"bufio"
	"fmt"
	"io"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// sink shows records one after the other.
type sink interface {
	record(r query.Record)
	isEmpty() bool // no record was shown
	Flush()
	err() error
}

func newSink(w io.Writer, form string) sink {
	if form == "jsonl" {
		buffered := bufio.NewWriter(w)
		return &jsonLines{cli.NewPrinter(buffered), buffered}
	}
	isWide := form == "wide"
	p := cli.NewPrinter(w)
	return &rows{p, cli.NewColumns(p, header(isWide)...), isWide, true}
}

type rows struct {
	p *cli.Printer
	*cli.Columns
	isWide   bool
	hasNoRow bool
}

func (r *rows) record(q query.Record) {
	r.hasNoRow = false
	r.Add(row(q, r.isWide)...)
}
func (r *rows) isEmpty() bool { return r.hasNoRow }
func (r *rows) err() error    { return r.p.Err }

// jsonLines shows records as they stand in the log. Only what no log's writer writes, such as a raw control, becomes an escape.
type jsonLines struct {
	p        *cli.Printer
	buffered *bufio.Writer
}

func (j *jsonLines) record(q query.Record) { j.p.Printf("%s\n", inert.JSON(q.Raw)) }
func (j *jsonLines) isEmpty() bool         { return j.buffered.Buffered() == 0 }
func (j *jsonLines) err() error            { return j.p.Err }

func (j *jsonLines) Flush() {
	if j.p.Err == nil {
		j.p.Err = j.buffered.Flush()
	}
}

// written ends what a sink shows, and then says how the logs stand. If reading failed before any record came, there is no table: an empty one
// would be an answer.
func written(s sink, in *reading, result error) error {
	if result == nil || !s.isEmpty() {
		s.Flush()
	}
	if s.err() != nil {
		result = cli.BadInput(fmt.Errorf("write output: %w", s.err()))
	}
	return in.done(result)
}
