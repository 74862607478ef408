package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value string
	among []string
}

// String, Set and Type make choice a flag value.
func (c *choice) String() string { return c.value }

// Set refuses what is not among the words.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.among, s) {
		return errors.New("must be " + strings.Join(c.among[:len(c.among)-1], ", ") + " or " + c.among[len(c.among)-1])
	}
	c.value = s
	return nil
}

// Type names the words in help texts.
func (c *choice) Type() string { return strings.Join(c.among, "|") }

// addChoice adds a flag whose first word is the default.
func addChoice(cmd *cobra.Command, name, short, help string, among ...string) *choice {
	c := &choice{among[0], among}
	cmd.Flags().VarP(c, name, short, help)
	completes(cmd, name, among...)
	return c
}

// completes offers words for a flag in a shell.
func completes(cmd *cobra.Command, name string, words ...string) {
	// It fails for a flag that is not there or has its words, both of which each test of the command finds.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// sink shows records one after the other.
type sink interface {
	record(r query.Record)
	isEmpty() bool // no record was shown
	flush()
	err() error
}

func newSink(w io.Writer, form string) sink {
	if form == "jsonl" {
		buffered := bufio.NewWriter(w)
		return &jsonLines{printer{w: buffered}, buffered}
	}
	isWide := form == "wide"
	return &rows{newColumns(w, header(isWide)...), isWide, true}
}

type rows struct {
	*columns
	isWide   bool
	hasNoRow bool
}

func (r *rows) record(q query.Record) {
	r.hasNoRow = false
	r.add(row(q, r.isWide))
}
func (r *rows) isEmpty() bool { return r.hasNoRow }
func (r *rows) err() error    { return r.p.err }

// jsonLines shows records as they stand in the log. Only what no log's writer writes, such as a raw control, becomes an escape.
type jsonLines struct {
	p        printer
	buffered *bufio.Writer
}

func (j *jsonLines) record(q query.Record) { j.p.printf("%s\n", inert.JSON(q.Raw)) }
func (j *jsonLines) isEmpty() bool         { return j.buffered.Buffered() == 0 }
func (j *jsonLines) err() error            { return j.p.err }

func (j *jsonLines) flush() {
	if j.p.err == nil {
		j.p.err = j.buffered.Flush()
	}
}

// written ends what a sink shows, and then says how the logs stand. If reading failed before any record came, there is no table: an empty one
// would be an answer.
func written(s sink, in *reading, result error) error {
	if result == nil || !s.isEmpty() {
		s.flush()
	}
	if s.err() != nil {
		result = badInput(fmt.Errorf("write output: %w", s.err()))
	}
	return in.done(result)
}
