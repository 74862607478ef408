package auditcmd

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// maxTail bounds the memory for the last records.
const maxTail = 10_000

// followEvery is the interval at which a followed log is checked for new records.
const followEvery = 500 * time.Millisecond

func newTail() *cobra.Command {
	var count int
	var follows bool
	cmd := &cobra.Command{
		Use:   "tail LOG",
		Short: "Print the last audit records, and with -f new ones as they come",
		Long: `Prints the last matching records. Without --keys, a directory is read from its end, no further than needed: what is wrong with earlier records
shows in search, check and verify. With -f it continues with new records, in new segments too, until it is interrupted, and reports lines
that are not records, and missing records, at once. With --keys, the records of a directory are shown once they are signed, which the
proxy does each second; records that stay unsigned longer are counted on standard error. If new records do not continue the ones shown, or do
not match their signatures, standard error says so, and later records are shown without verification. Records already shown are not
checked again.

` + aboutLogs + `

` + aboutFilters + `

Exit code: 0, 1 if the log was changed, or 3 if lines were not records, records were missing or the log became shorter while it was followed.`,
		Example: `  pipeguard audit tail -f C:\ProgramData\Pipeguard\audit --decision deny`,
		Args:    cli.Argument("a log"),
	}
	out := cli.AddChoice(cmd, "output", "o", "output format", "table", "wide", "jsonl")
	filter := addFilter(cmd)
	trust := addTrust(cmd)
	cmd.Flags().IntVarP(&count, "lines", "n", 10, "how many records, at most 10000")
	cmd.Flags().BoolVarP(&follows, "follow", "f", false, "continue with new records as they are written")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case count < 0 || count > maxTail:
			return cli.BadInput(errors.New("--lines must be between 0 and 10000"))
		case follows && args[0] == "-":
			return cli.BadInput(errors.New("standard input cannot be followed: its end is final"))
		}
		f, err := filter(time.Now())
		if err != nil {
			return err
		}
		s := newSink(cmd.OutOrStdout(), out.Value)
		if follows && trust.isAsked() {
			return followVerified(cmd, trust, f, s, args[0], count)
		}
		if !follows {
			in, ring, err := last(cmd, trust, filter, args[0], count)
			if err != nil {
				return err
			}
			for _, r := range ring.Records() {
				s.record(r)
			}
			return written(s, in, nil)
		}
		segments := 0
		if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
			if in, _, err := last(cmd, trust, filter, args[0], count); err == nil && in.source.IsCut() {
				segments = in.end.segments
			}
		}
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "not verified: no keys given")
		live := trust.reading(cmd, f)
		live.isLive = true
		return written(s, live, tail(live.over(query.FollowLast(cmd.Context(), args[0], followEvery, segments)), s, count))
	}
	return cmd
}

// endOfLog is how much of a directory is read: so many segments, or so many lines of the last one. The zero value is all of it.
type endOfLog struct{ segments, lines int }

// fromEnd is where the last records are looked for, one after the other. The first is for records without a filter.
func fromEnd(count int) []endOfLog {
	return []endOfLog{{1, count + 1000}, {2, 0}, {16, 0}, {}}
}

// last returns the last matching records of a log, and how they were read: without keys, from as little of its end as holds so many.
func last(cmd *cobra.Command, trust *trust, filter func(time.Time) (*query.Filter, error), name string, count int) (*reading, *query.Ring, error) {
	now := time.Now()
	for _, e := range fromEnd(count) {
		f, err := filter(now) // it remembers what it matched
		if err != nil {
			return nil, nil, err
		}
		in := trust.reading(cmd, f)
		in.end = e
		records, err := in.records([]string{name})
		if err != nil {
			return nil, nil, err
		}
		ring := query.NewRing(count)
		for r, err := range records {
			if err != nil { // the last records read are not the last ones written
				return nil, nil, in.done(cli.BadInput(err))
			}
			ring.Add(r)
		}
		if ring.Len() >= count || !in.source.IsCut() {
			return in, ring, nil
		}
	}
	return nil, nil, errors.New("not all of the log was read")
}

// followVerified shows the records of a log and then new ones, those of a directory once they are signed.
func followVerified(cmd *cobra.Command, trust *trust, f *query.Filter, s sink, name string, count int) error {
	in := trust.reading(cmd, f)
	records, err := in.records([]string{name})
	if err != nil {
		return err
	}
	var signed evidence.Position
	if in.source.Kinds().Directories > 0 {
		signed = in.source.Logs()[0].Report.Position
	}
	shown := map[string]int{}
	covered := filtered(records, func(r query.Record, err error) bool {
		return err != nil || signed.Last() == 0 || r.Seq <= signed.Last()
	})
	if err := tail(noting(covered, shown), s, count); err != nil {
		return written(s, in, err)
	}
	if err := in.judged(nil); err != nil {
		return err
	}
	live := trust.reading(cmd, f)
	live.isLive = true
	follow := func() iter.Seq2[query.Record, error] {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "records from here on are not verified")
		return beyond(live.over(query.Follow(cmd.Context(), name, followEvery)), shown)
	}
	if signed.Last() == 0 {
		return written(s, live, tail(follow(), s, maxTail))
	}
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "new records are shown once they are signed")
	o := trust.o
	o.Progress, o.Origin = nil, cmp.Or(o.Origin, in.source.Logs()[0].Report.Origin) // only of this log, even if there are keys of others
	followed := takenOver(cmd, query.FollowVerified(cmd.Context(), name, o, signed, followEvery))
	err = tail(noting(live.over(followed), shown), s, maxTail)
	changed, ok := errors.AsType[*query.Changed](err)
	if !ok {
		return written(s, live, err)
	}
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), inert.Line(changed.Error()))
	return cli.No(errors.Join(written(s, live, tail(follow(), s, maxTail)), errors.New("the log was changed while it was followed")))
}

// takenOver reports records that were still unsigned when their process ended. An attacker with write access to the directory could have added or removed such records.
func takenOver(cmd *cobra.Command, records iter.Seq2[query.Record, error]) iter.Seq2[query.Record, error] {
	return filtered(records, func(r query.Record, err error) bool {
		if err == nil && r.Log != nil && r.Log.Unsigned > 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "record %d signs %d records before it as they were found: they were not signed when the process that wrote them ended\n", r.Seq, r.Log.Unsigned)
		}
		return true
	})
}

// noting remembers the last line of each file that was passed on as a record.
func noting(records iter.Seq2[query.Record, error], shown map[string]int) iter.Seq2[query.Record, error] {
	return filtered(records, func(r query.Record, err error) bool {
		if err == nil {
			shown[r.File] = max(shown[r.File], r.Line)
		}
		return true
	})
}

// beyond leaves out the records that were shown before. It compares file and line: a planted file may repeat numbers.
func beyond(records iter.Seq2[query.Record, error], shown map[string]int) iter.Seq2[query.Record, error] {
	return filtered(records, func(r query.Record, err error) bool { return err != nil || r.Line > shown[r.File] })
}

// tail shows the last of the records, and then new ones as they come.
func tail(records iter.Seq2[query.Record, error], s sink, count int) error {
	ring, isLive := query.NewRing(count), false
	drain := func() {
		for _, r := range ring.Records() {
			s.record(r)
		}
		ring = query.NewRing(0)
		s.Flush()
	}
	for r, err := range records {
		switch {
		case errors.Is(err, query.ErrEnd):
			drain()
			isLive = true
		case errors.As(err, new(*query.Changed)):
			drain()
			return err
		case err != nil: // the last records read are not the last ones written
			return cli.BadInput(err)
		case isLive:
			s.record(r)
		default:
			ring.Add(r)
		}
		if s.err() != nil {
			return nil
		}
	}
	drain()
	return nil
}
