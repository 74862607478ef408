package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// sayPower logs the protections and privileges of this process. A missing protection does not keep the service from starting: an older
// Windows has fewer, and access checks work all the same.
func sayPower(log *zap.Logger, protections []winsvc.Protection, power func(pid uint32) (winsvc.Power, error)) {
	for _, p := range protections {
		if p.On {
			log.Info("protection is on", zap.String(logkeys.Protection, p.Name))
		} else {
			log.Info("protection is off", zap.String(logkeys.Protection, p.Name), zap.String(logkeys.Reason, p.Reason))
		}
	}
	held, err := power(uint32(os.Getpid())) // #nosec G115 -- process IDs of Windows have 32 bits
	if err != nil {
		log.Info("privileges of this process are not known", zap.Error(err))
		return
	}
	log.Info("privileges of this process", zap.Strings(logkeys.Privileges, held.Privileges))
}

// checkOwnProgram warns of a program that accounts without administrator's rights could replace. The service starts all the same: a
// refusal would leave the node without storage, and the next start to an attacker's program.
func checkOwnProgram(log *zap.Logger, executable func() (string, error), check func(path string) error) {
	path, err := executable()
	if err == nil {
		err = check(path)
	}
	if err != nil {
		log.Warn("OTHER ACCOUNTS MAY BE ABLE TO CHANGE THIS PROGRAM, which runs as SYSTEM", event(eventProgram), zap.String(logkeys.Path, path), zap.Error(err))
	}
}

// askPower reads the privileges of the running process, and checks which accounts may change its program.
func (s *serviceStatus) askPower(pid uint32, power func(pid uint32) (winsvc.Power, error), check func(path string) error) error {
	if s.Program != "" {
		if err := check(s.Program); err != nil {
			s.ProgramFault = err.Error()
		}
	}
	if pid == 0 {
		return nil
	}
	held, err := power(pid)
	if err != nil {
		return fmt.Errorf("what the service may do: %w", err)
	}
	s.Process = &held
	return nil
}

// printPower prints rows of a table.
func (s *serviceStatus) printPower(table *tabwriter.Writer) {
	if s.SIDType != "" {
		printRow(table, "service SID", string(s.SIDType))
		kept := "all of its account's"
		if len(s.Privileges) > 0 {
			kept = strings.Join(s.Privileges, ", ")
		}
		printRow(table, "keeps privileges", kept)
	}
	if s.Process != nil {
		printRow(table, "process holds", strings.Join(s.Process.Privileges, ", "))
		for _, p := range s.Process.Protections {
			state := "on"
			if !p.On {
				state = strings.TrimSuffix("off: "+p.Reason, ": ")
			}
			printRow(table, p.Name, state)
		}
	}
	if s.ProgramFault != "" {
		printRow(table, "PROGRAM CAN BE CHANGED", s.ProgramFault)
	}
}
