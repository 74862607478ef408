package main

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// maxTail bounds the memory that the last records take.
const maxTail = 10_000

// followEvery is how often is looked for new records.
const followEvery = 500 * time.Millisecond

func newAuditTail() *cobra.Command {
	var count int
	var follows bool
	cmd := &cobra.Command{
		Use:   "tail LOG",
		Short: "Print the last audit records, and with -f those that come",
		Long: `Prints the last records that fit. With -f it goes on with those that are written, into new segments too, until it is interrupted, and
names what is no record, and where records are missing, at once; what is verified are those that were there at the beginning.

` + aboutLogs + `

` + aboutFilters + `

Exit code: 0, 1 if the log was changed, or 2 if lines were no records, records were missing or the log became shorter while it was followed.`,
		Example: `  pipeguard audit tail -f C:\ProgramData\Pipeguard\audit --decision deny`,
		Args:    argument("a log"),
	}
	out := addChoice(cmd, "output", "o", "output format", "table", "wide", "jsonl")
	filter := addFilter(cmd)
	trust := addTrust(cmd)
	cmd.Flags().IntVarP(&count, "lines", "n", 10, "how many records, at most 10000")
	cmd.Flags().BoolVarP(&follows, "follow", "f", false, "go on with what is written")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case count < 0 || count > maxTail:
			return badInput(errors.New("--lines must be between 0 and 10000"))
		case follows && args[0] == "-":
			return badInput(errors.New("standard input cannot be followed: its end is final"))
		}
		f, err := filter(time.Now())
		if err != nil {
			return err
		}
		in := trust.reading(cmd, f)
		s := newSink(cmd.OutOrStdout(), out.value)
		if follows && !trust.isAsked() {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "not verified: no keys given")
			in.isLive = true
			return written(s, in, tail(in.over(query.Follow(cmd.Context(), args[0], followEvery)), s, count))
		}
		records, err := in.records(args)
		if err != nil {
			return err
		}
		shown := map[string]int{}
		err = tail(noting(records, shown), s, count)
		if !follows || err != nil {
			return written(s, in, err)
		}
		if err := in.judged(nil); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "what comes now is not verified")
		in = trust.reading(cmd, f)
		in.isLive = true
		more := beyond(in.over(query.Follow(cmd.Context(), args[0], followEvery)), shown)
		return written(s, in, tail(more, s, maxTail))
	}
	return cmd
}

// noting keeps the last line of each file that holds a record which fits.
func noting(records iter.Seq2[query.Record, error], shown map[string]int) iter.Seq2[query.Record, error] {
	return func(yield func(query.Record, error) bool) {
		for r, err := range records {
			if err == nil {
				shown[r.File] = max(shown[r.File], r.Line)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// beyond leaves out the records that were shown before. It compares file and line: a planted file may repeat numbers.
func beyond(records iter.Seq2[query.Record, error], shown map[string]int) iter.Seq2[query.Record, error] {
	return func(yield func(query.Record, error) bool) {
		for r, err := range records {
			if (err != nil || r.Line > shown[r.File]) && !yield(r, err) {
				return
			}
		}
	}
}

// tail shows the last of the records, and then those that come.
func tail(records iter.Seq2[query.Record, error], s sink, count int) error {
	ring, isLive := query.NewRing(count), false
	drain := func() {
		for _, r := range ring.Records() {
			s.record(r)
		}
		ring = query.NewRing(0)
		s.flush()
	}
	for r, err := range records {
		switch {
		case errors.Is(err, query.ErrEnd):
			drain()
			isLive = true
		case err != nil: // what was read last is not what was written last
			return badInput(err)
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
