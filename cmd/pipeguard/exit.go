package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// Exit codes, the same for every command.
const (
	exitYes      = 0 // what was asked holds
	exitNo       = 1 // it does not: denied, failed, not clean
	exitBadInput = 2 // it could not be understood or answered

	exitInterrupted = 130 // a signal ended the program before the command did, as a shell has it
)

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
