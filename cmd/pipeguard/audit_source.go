package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// aboutLogs is what the help of each command that reads logs says of them.
const aboutLogs = `LOG is a directory of segments (audit-<number>-<id>.jsonl, or packed by gzip: .jsonl.gz), a file of records, or - for standard input;
several are read in the order given. Copies will do, on any system; nothing is changed, and one record is in memory at a time.
Records that are missing between others of a directory, or in a segment of it that cannot be read, are named like lines that are no records.

` + aboutTrust

// logs wants at least one log.
func logs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return badInput(fmt.Errorf("name a log: %s", cmd.UseLine()))
	}
	return nil
}

// logRecords reads logs until the program is asked to end. Nothing is verified.
func logRecords(cmd *cobra.Command, names ...string) (iter.Seq2[query.Record, error], error) {
	source, err := query.Open(names, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	return untilStopped(cmd.Context(), source), nil
}

func untilStopped(ctx context.Context, source *query.Source) iter.Seq2[query.Record, error] {
	return func(yield func(query.Record, error) bool) {
		for r, err := range source.Records() {
			if stopped := ctx.Err(); stopped != nil {
				yield(query.Record{}, stopped)
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
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
