package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// aboutTrust is what the help of each command that shows records says of their verification.
const aboutTrust = `With --keys, and --checkpoint for checkpoints kept elsewhere, the log is verified as by "pipeguard audit verify", and exactly the bytes that were
verified are read. Standard error says how far: "verified up to N", or "not verified" and why. A log that was changed is still shown, every
file in full, with exit code 1; standard error says so before the first record. A record that does not continue the one before it, by
number or by hash, has ! before its number.`

// trust holds the flags that say whether and how a command verifies the logs that it reads.
type trust struct {
	keys []string
	o    evidence.VerifyOptions
}

func addTrust(cmd *cobra.Command) *trust {
	t := &trust{}
	addEvidenceFlags(cmd, &t.o, &t.keys)
	cmd.Flags().BoolVar(&t.o.RequireWitness, "require-witness", false, "count a --checkpoint only if a known witness cosigned it; the default if --keys has the key of a witness")
	cmd.Flags().BoolVar(&t.o.AllowPruned, "allow-pruned", false, "accept a log that says it removed its oldest records as complete")
	return t
}

// isAsked says whether verification was requested.
func (t *trust) isAsked() bool { return len(t.keys) > 0 || len(t.o.Outside) > 0 }

// open finds the logs, and verifies them if there are keys.
func (t *trust) open(ctx context.Context, cmd *cobra.Command, names []string) (*query.Source, error) {
	if !t.isAsked() {
		source, err := query.Open(names, cmd.InOrStdin())
		if err != nil {
			return nil, cli.BadInput(err)
		}
		return source, nil
	}
	if len(t.keys) == 0 {
		return nil, cli.BadInput(errors.New("name the log's verifier key with --keys: without it no checkpoint can be verified"))
	}
	if err := readVerifierKeys(&t.o, t.keys); err != nil {
		return nil, cli.BadInput(err)
	}
	return t.verified(ctx, cmd, names)
}

// verified opens logs that are verified first, whatever keys there are.
func (t *trust) verified(ctx context.Context, cmd *cobra.Command, names []string) (*query.Source, error) {
	needsWitness(cmd, &t.o)
	bar := cli.NewProgress(cmd.ErrOrStderr())
	t.o.Progress = bar.Bytes
	source, err := query.OpenVerified(ctx, names, cmd.InOrStdin(), t.o)
	bar.Clear()
	if err != nil {
		return nil, cli.BadInput(err)
	}
	return source, nil
}

// reading passes records on, and keeps track of lines that are not records and of the verification of the logs.
type reading struct {
	cmd    *cobra.Command
	trust  *trust
	filter *query.Filter // nil matches every record
	source *query.Source
	named  error // the first bad lines
	ends   error // gaps behind the first bad lines
	ended  int
	bad    int
	isAll  bool     // every record was read and filtered
	end    endOfLog // what is read of each directory that is not verified
	said   map[string]bool
	// isLive says that the log is followed: bad lines are named as they are met, and only counted at the end.
	isLive bool
}

func (t *trust) reading(cmd *cobra.Command, f *query.Filter) *reading {
	return &reading{cmd: cmd, trust: t, filter: f, said: map[string]bool{}}
}

// lines returns the records of logs, and errors for lines that are not records, until the command is interrupted.
func (r *reading) lines(names ...string) (iter.Seq2[query.Record, error], error) {
	var err error
	if r.source, err = r.trust.open(r.cmd.Context(), r.cmd, names); err != nil {
		return nil, err
	}
	switch {
	case r.end.lines > 0:
		r.source.LastLines(r.end.lines)
	case r.end.segments > 0:
		r.source.Last(r.end.segments)
	}
	r.warn()
	return untilStopped(r.cmd.Context(), r.source), nil
}

// warn says on standard error that a log was changed, before anything of it is shown: its records are evidence all the same, but must not be
// read as those of an intact log.
func (r *reading) warn() {
	for _, l := range r.source.Logs() {
		if l.Report != nil && l.Report.Fault != nil {
			r.tellStanding(l)
		}
	}
}

// records returns the matching records of logs; lines that are not records are reported by done. Any other error ends the sequence.
func (r *reading) records(names []string) (iter.Seq2[query.Record, error], error) {
	lines, err := r.lines(names...)
	if err != nil {
		return nil, err
	}
	return r.over(lines), nil
}

// again returns all records once more.
func (r *reading) again() iter.Seq2[query.Record, error] {
	r.named, r.ends, r.ended, r.bad = nil, nil, 0, 0
	return r.over(untilStopped(r.cmd.Context(), r.source))
}

// addReading adds the flags of filters and of verification, and returns a function that opens the logs of a command line.
func addReading(cmd *cobra.Command) func(names []string) (*reading, iter.Seq2[query.Record, error], error) {
	filter, trust := addFilter(cmd), addTrust(cmd)
	return func(names []string) (*reading, iter.Seq2[query.Record, error], error) {
		f, err := filter(time.Now())
		if err != nil {
			return nil, nil, err
		}
		in := trust.reading(cmd, f)
		lines, err := in.lines(names...)
		if err != nil {
			return in, nil, err
		}
		in.only(f.Wanted(0, nil))
		return in, in.over(lines), nil
	}
}

// borrow has the records that fit read only if counts is true, for a command that looks at parts of each, one after the other.
func (r *reading) borrow(parts audit.Parts, counts func(*audit.Event) bool) {
	wanted := r.filter.Wanted(parts, counts)
	wanted.Lends = true
	r.only(wanted)
}

// gcPercent is how much garbage may gather, relative to live memory, while records are read that are not kept: they make garbage fast and leave little.
const gcPercent = 300

// only has records left out that are not wanted.
func (r *reading) only(wanted query.Wanted) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	r.source.Only(r.cmd.Context(), wanted)
}

// over returns the matching records. Bad lines, and records that stay unsigned too long, are noted for done.
func (r *reading) over(records iter.Seq2[query.Record, error]) iter.Seq2[query.Record, error] {
	return filtered(r.fitting(records), func(_ query.Record, err error) bool {
		isNoted := errors.As(err, new(*query.BadLine)) || errors.As(err, new(*query.Unsigned))
		if isNoted {
			r.note(err)
		}
		return !isNoted
	})
}

// fitting leaves out the records that do not match. Where records are missing it returns an error, as for a line that is not a record.
func (r *reading) fitting(records iter.Seq2[query.Record, error]) iter.Seq2[query.Record, error] {
	return func(yield func(query.Record, error) bool) {
		said := map[string]bool{}
		tellSilent := func() bool {
			for _, bad := range r.silent() {
				if text := bad.Error(); !said[text] && !yield(query.Record{}, bad) {
					return false
				}
				said[bad.Error()] = true
			}
			return true
		}
		if !tellSilent() {
			return
		}
		var failed error
		for record, err := range records {
			failed = err
			if record.Missing > 0 && !yield(query.Record{}, missing(record)) {
				return
			}
			if (err != nil || r.filter == nil || r.filter.Match(&record.Event)) && !yield(record, err) {
				return
			}
		}
		r.isAll = failed == nil || errors.As(failed, new(*query.BadLine))
		if r.isAll {
			tellSilent() // segments after the last record
		}
	}
}

func (r *reading) note(err error) {
	bad, ok := errors.AsType[*query.BadLine](err)
	switch r.bad++; {
	case r.bad <= maxNamedLines:
		r.named = errors.Join(r.named, err)
	case ok && bad.IsGap && r.ended < maxNamedLines:
		r.ended++
		r.ends = errors.Join(r.ends, err)
	default:
		return
	}
	if r.isLive {
		_, _ = fmt.Fprintln(r.cmd.ErrOrStderr(), inert.Line(err.Error()))
	}
}

// done reports the verification of the logs, and turns it and bad lines into an exit code: with bad lines, the result may be incomplete.
func (r *reading) done(result error) error { return r.judged(r.told(result)) }

// told turns bad lines alone into an exit code.
func (r *reading) told(result error) error {
	switch {
	case result != nil || r.bad == 0:
	case r.isLive:
		result = cli.Incomplete(fmt.Errorf("lines that are no records, or places where records are missing: %d", r.bad))
	case r.bad > maxNamedLines:
		result = cli.Incomplete(errors.Join(r.named, fmt.Errorf("and %d more lines that are no records, or places where records are missing", r.bad-maxNamedLines), r.ends))
	default:
		result = cli.Incomplete(r.named)
	}
	return result
}

// judged reports the verification of the logs on standard error. A changed log outranks every other result.
func (r *reading) judged(result error) error {
	if r.source == nil || r.cmd.Context().Err() != nil {
		return result
	}
	if r.tell() {
		if _, message := cli.Verdict(result); message == "" {
			result = nil
		}
		return cli.No(errors.Join(result, errors.New("the log was changed")))
	}
	return result
}

// missing reports missing records before r, in the form of a bad line.
func missing(r query.Record) error {
	first, last := r.Seq-r.Missing, r.Seq-1
	text := fmt.Sprintf("records %d to %d are missing before record %d: nothing that is read of the log holds them", first, last, r.Seq)
	if first == last {
		text = fmt.Sprintf("record %d is missing before record %d: nothing that is read of the log holds it", first, r.Seq)
	}
	return badLine(r.File, r.Line, text)
}

// silent reports, in the form of bad lines, segments that are not read although they may hold records missing at the beginning or end of a log.
func (r *reading) silent() (bad []error) {
	if r.source == nil {
		return nil
	}
	for _, l := range r.source.Logs() {
		for _, s := range l.Silent() {
			bad = append(bad, badLine(s.Path, 1, "the segment is not read, and may hold records of the log: "+s.Why))
		}
	}
	return bad
}

func badLine(file string, line int, problem string) error {
	return &query.BadLine{File: file, LineError: audit.LineError{Line: line, Err: errors.New(problem)}, IsGap: true}
}

// tell reports the verification of the logs on standard error, and says whether one of them was changed.
func (r *reading) tell() (isChanged bool) {
	r.tellUnseen()
	for _, text := range r.doubts() {
		_, _ = fmt.Fprintln(r.cmd.ErrOrStderr(), text)
	}
	for _, l := range r.source.Logs() {
		isChanged = r.tellStanding(l) || isChanged
		r.tellUnread(l)
	}
	return isChanged
}

// tellStanding reports the verification of a log once, and says whether it was changed.
func (r *reading) tellStanding(l *query.Log) (isChanged bool) {
	text, isChanged := standing(l)
	if len(r.source.Logs()) > 1 && r.source.IsVerified() {
		text = strings.Join(l.Names, ", ") + ": " + text
	}
	if !r.said[text] {
		_, _ = fmt.Fprintln(r.cmd.ErrOrStderr(), inert.Line(text))
	}
	r.said[text] = true
	return isChanged
}

// tellUnseen names filter values that no record has: a filter without matches may be misspelt.
func (r *reading) tellUnseen() {
	if r.filter == nil || !r.isAll || r.source.IsCut() || r.bad > 0 { // a line that is no record may have it
		return
	}
	logs := "this log"
	if len(r.source.Logs()) > 1 {
		logs = "these logs"
	}
	for _, name := range r.filter.Unseen() {
		_, _ = fmt.Fprintln(r.cmd.ErrOrStderr(), inert.Line(fmt.Sprintf("no record of %s has %s", logs, name)))
	}
}

// doubts say how many of the matching requests may not match the filters after all.
func (r *reading) doubts() (texts []string) {
	if r.filter == nil {
		return nil
	}
	for _, d := range r.filter.Doubts() {
		text := fmt.Sprintf("whether they have that %s: they are counted in summaries, or their records do not name all that they named", d.Key)
		if d.Key == "path" {
			text += ", or not where it leads"
		}
		if d.Key == "time" {
			text = "whether they lie between those times: they are counted in summaries that begin before or end after"
		}
		texts = append(texts, fmt.Sprintf("of %d requests or connections it is not known %s", d.Count, text))
	}
	return texts
}

// tellUnread names entries of the directory and records that are not part of the log, and records that do not continue the one before.
func (r *reading) tellUnread(l *query.Log) {
	for i, s := range l.Unread {
		if i == maxNamedLines {
			_, _ = fmt.Fprintf(r.cmd.ErrOrStderr(), "and %d more entries are not read\n", len(l.Unread)-i)
			break
		}
		_, _ = fmt.Fprintln(r.cmd.ErrOrStderr(), inert.Line(fmt.Sprintf("not read: %s: %s", s.Path, s.Why)))
	}
	if l.Report != nil {
		for i, text := range signedOverrulings(*l.Report) {
			if i == maxNamedLines {
				break
			}
			_, _ = fmt.Fprintln(r.cmd.ErrOrStderr(), inert.Line("not read: "+text))
		}
	}
	if l.Loose > 0 {
		text := "1 record does not follow on the record before it: " + l.First
		if l.Loose > 1 {
			text = fmt.Sprintf("%d records do not follow on the record before them, first: %s", l.Loose, l.First)
		}
		_, _ = fmt.Fprintln(r.cmd.ErrOrStderr(), inert.Line(text))
	}
}

// standing is one line about the verification of a log that was read, and says whether it was changed.
func standing(l *query.Log) (text string, isChanged bool) {
	s := l.Standing()
	if s.Verified == 0 {
		why := s.Why
		if l.Report != nil && !s.Changed && len(l.Report.Incomplete) == 0 {
			why = "no checkpoint covers it"
		}
		return "not verified: " + why, s.Changed
	}
	text = fmt.Sprintf("verified up to %d", s.Verified)
	if s.Verified < l.Report.LastSeq {
		text += fmt.Sprintf(" of %d", l.Report.LastSeq)
	}
	if s.ByItself {
		text += ", by checkpoints that lay beside the log alone"
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text, false
}
