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
several are read in the order given. Copies work as well, on any system; no log is changed, and memory does not grow with its length.
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
		if stopped := ctx.Err(); stopped != nil { // before a record that is wanted
			yield(query.Record{}, stopped)
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

// FindRecord returns the last record, or the first, of the request with that id for which fits is true, and what speaks against the log, as for "audit
// check": nil, or the error with which the command ends once it has answered. The log is read to its end. If it has no such record, the error names what
// was wanted, and how many lines are no records: that shows a file of another kind.
func FindRecord(cmd *cobra.Command, name, id, wanted string, isFirst bool, fits func(*audit.Event) bool) (found *audit.Event, doubt, err error) {
	in := (&trust{}).reading(cmd, nil)
	lines, err := in.lines(name)
	if err != nil {
		return nil, nil, err
	}
	bad := 0
	report, err := reconcile(lines, in.source.PrunedUntil, func(r query.Record, err error) {
		if errors.As(err, new(*query.BadLine)) {
			bad++
		}
		if (found == nil || !isFirst) && err == nil && r.ID == id && r.Type == audit.TypeRequest && fits(&r.Event) {
			found = &r.Event
		}
	})
	if err != nil {
		return nil, nil, err
	}
	for _, err := range in.silent() {
		in.note(err)
	}
	if doubt = report.doubt(); doubt == nil {
		doubt = in.told(nil)
	}
	if found != nil {
		return found, doubt, nil
	}
	err = fmt.Errorf("%s holds no %s", name, wanted)
	if bad > 0 {
		err = fmt.Errorf("%w; %d lines are no records, or records are missing there", err, bad)
	}
	return nil, nil, errors.Join(err, doubt)
}
