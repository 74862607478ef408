package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// Exit codes, the same for every command.
const (
	ExitYes         = 0
	ExitNo          = 1
	ExitBadInput    = 2
	ExitIncomplete  = 3
	ExitInterrupted = 130 // as shells report SIGINT
)

// exitCodes say what the codes mean, in the help of the program and in docs/cli.md.
var exitCodes = []struct {
	code  int
	means string
}{
	{ExitYes, "yes: allowed, clean, done"},
	{ExitNo, "no: denied, failed, not formatted, tampered with"},
	{ExitBadInput, "the question could not be understood or answered: a wrong command line, bad input, policies that do not work, output that could not be written"},
	{ExitIncomplete, "incomplete, of an audit log: records are missing or do not fit each other, or not everything is proven"},
	{ExitInterrupted, "Ctrl+C or SIGTERM, and the command was not done two seconds later: it was waiting for something that nothing interrupts, such as a FIFO without a writer"},
}

// ExitTable returns the exit codes as a table for help texts.
func ExitTable() string {
	var b strings.Builder
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "  %3d  %s\n", c.code, c.means)
	}
	return b.String()
}

// exit is an error that knows its exit code. It is silent if err is nil: the command has said everything.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// No returns an error with the exit code of a "no"; without err the command has printed its answer already, as in the next two.
func No(err error) error { return &exit{ExitNo, err} }

// BadInput returns an error with the exit code of a question that could not be answered.
func BadInput(err error) error { return &exit{ExitBadInput, err} }

// Incomplete returns an error with the exit code of an audit log that is incomplete.
func Incomplete(err error) error { return &exit{ExitIncomplete, err} }

// Verdict turns the result of a command into an exit code and the text to print, one line for each fault: what it quotes of files begins none.
// An error without a code comes from cobra, which only complains of the command line.
func Verdict(err error) (code int, message string) {
	if err == nil {
		return ExitYes, ""
	}
	e, ok := errors.AsType[*exit](err)
	if !ok {
		e = &exit{ExitBadInput, err}
	}
	if e.err == nil {
		return e.code, ""
	}
	return e.code, strings.Join(inert.Faults(e.err), "\n")
}
