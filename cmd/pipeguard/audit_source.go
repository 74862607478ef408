package main

import (
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// aboutLogs is what the help of each command that reads logs says of them.
const aboutLogs = `LOG is a directory of segments (audit-<number>-<id>.jsonl), a file of records, or - for standard input; several are read in the
order given. Copies will do, on any system; nothing is changed, and one record is in memory at a time.`

// logs wants at least one log.
func logs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return badInput(fmt.Errorf("name a log: %s", cmd.UseLine()))
	}
	return nil
}

// logRecords reads logs until the program is asked to end.
func logRecords(cmd *cobra.Command, names ...string) (iter.Seq2[query.Record, error], error) {
	source, err := query.Open(names, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	return func(yield func(query.Record, error) bool) {
		for r, err := range source.Records() {
			if stopped := cmd.Context().Err(); stopped != nil {
				yield(query.Record{}, stopped)
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}, nil
}

// eachRecord calls each for the records of one log until it says that it has enough. Lines that are none are counted.
func eachRecord(cmd *cobra.Command, name string, each func(audit.Event) bool) (bad int, err error) {
	records, err := logRecords(cmd, name)
	if err != nil {
		return 0, err
	}
	for r, err := range records {
		switch line := new(*query.BadLine); {
		case errors.As(err, line):
			bad++
		case err != nil:
			return bad, err
		case !each(r.Event):
			return bad, nil
		}
	}
	return bad, nil
}

// notFound says that a log has no such record, and what it has that is none: a file of another kind is soon seen.
func notFound(bad int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if bad > 0 {
		err = fmt.Errorf("%w; %d lines are no records", err, bad)
	}
	return err
}

// reading passes records on and remembers the lines that are none.
type reading struct {
	named error // the first bad lines
	bad   int
}

// records returns the records of logs; lines that are none are told by done. Other errors come through and are the last.
func (r *reading) records(cmd *cobra.Command, names []string) (iter.Seq2[query.Record, error], error) {
	records, err := logRecords(cmd, names...)
	if err != nil {
		return nil, badInput(err)
	}
	return r.over(records), nil
}

func (r *reading) over(records iter.Seq2[query.Record, error]) iter.Seq2[query.Record, error] {
	return func(yield func(query.Record, error) bool) {
		for record, err := range records {
			if bad := new(*query.BadLine); errors.As(err, bad) {
				r.note(err)
				continue
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

func (r *reading) note(err error) {
	if r.bad++; r.bad <= maxNamedLines {
		r.named = errors.Join(r.named, err)
	}
}

// done makes an exit code of bad lines: what was found may not be all there was.
func (r *reading) done(result error) error {
	switch {
	case result != nil || r.bad == 0:
		return result
	case r.bad > maxNamedLines:
		return badInput(errors.Join(r.named, fmt.Errorf("and %d more lines that are no records", r.bad-maxNamedLines)))
	}
	return badInput(r.named)
}
