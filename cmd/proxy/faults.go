package main

import "errors"

// fault is an error with the service-specific exit code that tells an administrator where to look.
type fault struct {
	code uint32
	err  error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// Service-specific exit codes, as sc.exe query and the service manager's events show them. 1 is any other fault.
const (
	exitCommandLine   = 2
	exitConfiguration = 3
	exitAuditLog      = 4
	exitPipe          = 5
	exitHost          = 6
)

// because gives an error an exit code; nil stays nil.
func because(code uint32, err error) error {
	if err == nil {
		return nil
	}
	return &fault{code, err}
}

func serviceExitCode(err error) uint32 {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.code
	}
	return 1
}

// exitReasons are the service-specific exit codes in words.
var exitReasons = map[uint32]string{
	1: "(a fault while it ran)", exitCommandLine: "(command line)", exitConfiguration: "(configuration)", exitAuditLog: "(audit log)",
	exitPipe: "(pipes)", exitHost: "(host)",
}
