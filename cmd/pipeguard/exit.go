package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// Exit codes, the same for every command.
const (
	exitYes         = 0
	exitNo          = 1
	exitBadInput    = 2
	exitIncomplete  = 3
	exitInterrupted = 130 // as a shell has it
)

// exitCodes say what the codes mean, in the help of the program and in docs/cli.md.
var exitCodes = []struct {
	code  int
	means string
}{
	{exitYes, "yes: allowed, clean, done"},
	{exitNo, "no: denied, failed, not formatted, tampered with"},
	{exitBadInput, "the question could not be understood or answered: a wrong command line, bad input, policies that do not work, output that could not be written"},
	{exitIncomplete, "incomplete, of an audit log: records are missing or do not fit each other, or not everything is proven"},
	{exitInterrupted, "Ctrl+C or SIGTERM, and the command was not done two seconds later: it was waiting for something that nothing interrupts, such as a FIFO without a writer"},
}

func exitTable() string {
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

func no(err error) error { return &exit{exitNo, err} }

func badInput(err error) error { return &exit{exitBadInput, err} }

func incomplete(err error) error { return &exit{exitIncomplete, err} }

// verdict turns the result of a command into an exit code and the text to print, one line for each fault: what it quotes of files begins none.
// An error without a code comes from cobra, which only complains of the command line.
func verdict(err error) (code int, message string) {
	if err == nil {
		return exitYes, ""
	}
	var e *exit
	if !errors.As(err, &e) {
		return exitBadInput, inOwnLines(err)
	}
	if e.err == nil {
		return e.code, ""
	}
	return e.code, inOwnLines(e.err)
}

func inOwnLines(err error) string { return strings.Join(inert.Faults(err), "\n") }
