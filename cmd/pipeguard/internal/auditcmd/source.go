package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// aboutLogs describes the arguments of each command that reads logs.
const aboutLogs = `LOG is a directory of segments (audit-<number>-<id>.jsonl, or packed by gzip: .jsonl.gz), a file of records, or - for standard input;
several are read in the order given. Copies work as well, on any system; no log is changed, and one record is in memory at a time.
Records missing between others of a directory, or in a segment of it that cannot be read, are reported like lines that are not records.

` + aboutTrust

// logs requires at least one log.
var logs = cli.Arguments("a log")

// untilStopped passes records on until ctx is done.
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

// filtered passes on the records and errors for which keep returns true.
func filtered(records iter.Seq2[query.Record, error], keep func(query.Record, error) bool) iter.Seq2[query.Record, error] {
	return func(yield func(query.Record, error) bool) {
		for r, err := range records {
			if keep(r, err) && !yield(r, err) {
				return
			}
		}
	}
}

// FindRecord returns the last record, or the first, of the request with that id for which fits is true, and what speaks against the log: nil, or the
// error with which the command ends once it has answered. The log is read to its end, as by commands that show records without keys. If it has no such
// record, the error names what was wanted, and how many lines are no records: that shows a file of another kind.
func FindRecord(cmd *cobra.Command, name, id, wanted string, isFirst bool, fits func(*audit.Event) bool) (found *audit.Event, doubt, err error) {
	in := (&trust{}).reading(cmd, nil)
	records, err := in.records([]string{name})
	if err != nil {
		return nil, nil, err
	}
	for r, err := range records {
		switch {
		case err != nil:
			return nil, nil, err
		case r.IsBroken && doubt == nil:
			doubt = fmt.Errorf("the log was changed: %s, line %d: record %d or the record before it: %s", r.File, r.Line, r.Seq, r.Loose)
		}
		if (found == nil || !isFirst) && r.ID == id && r.Type == audit.TypeRequest && fits(&r.Event) {
			found = &r.Event
		}
	}
	if found == nil {
		err = fmt.Errorf("%s holds no %s", name, wanted)
		if in.bad > 0 {
			err = fmt.Errorf("%w; %d lines are no records, or records are missing there", err, in.bad)
		}
		return nil, nil, errors.Join(err, doubt)
	}
	if doubt != nil {
		return found, cli.No(errors.Join(in.named, doubt)), nil
	}
	return found, in.told(nil), nil
}
