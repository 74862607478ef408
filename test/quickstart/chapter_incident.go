package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pipeguard/pipeguard/test/harness"
)

// incident plays a day on another node, on which somebody breaks in, and reads the log that is left as a reviewer would.
func incident(ctx context.Context, s *story, st *stage) {
	s.chapter("An incident, and the log that is left of it")
	dir := filepath.Join(st.dir, "win-01") // not "incident", which is the program
	// read runs a command of pipeguard where the log was left.
	read := func(code int, args string, words ...string) func() error {
		return func() error {
			cmd := exec.CommandContext(ctx, st.programs.pipeguard, strings.Fields(args)...) // #nosec G204 -- a program that was just built
			cmd.Dir = dir
			out, errOut, got, err := harness.Run(cmd)
			if err != nil {
				return err
			}
			s.show(fmt.Sprintf("$ pipeguard %s\n%s\nexit code %d", args, strings.TrimRight(out+errOut, "\n"), got))
			if got != code {
				return fmt.Errorf("exit code %d, %d expected", got, code)
			}
			return mentions(out+errOut, words...)
		}
	}
	const trust = " --keys elsewhere/keys.pub --checkpoint elsewhere/win-01.checkpoint"
	if !s.step("A day is played",
		`Another guard, with invented pods: drivers do their work, a pod tries what it may not, the node is killed with an operation
		under way, an access list is changed and changed back. Two copies of the log are made that lie.`,
		func() error {
			out, errOut, code, err := output(ctx, st.programs.incident, dir)
			s.show(out + errOut)
			if err == nil && code != 0 {
				err = errors.New("the story was not as announced")
			}
			return err
		}) {
		return
	}
	s.step("Can the log be trusted?", `Hashes, numbers, signatures, and a checkpoint that a witness cosigned, which the node cannot take back.`,
		read(0, "audit verify evidence"+trust, "ok: "))
	s.step("What needs an explanation?", `The detection rules that a SIEM would run.`,
		read(1, "audit hunt evidence", "denied by the request policy", "its end is not known", "A denied call was carried out"))
	s.step("What was refused?", `Who, what, where, when and why, of each refusal that is not one of the burst.`,
		read(0, "audit search evidence --pod shop/report-runner-6c9f7 --decision deny --where method!=PathExists", "PN001", "as LinkPath"))
	s.step("And what was not?", `Two requests of that pod were let through under another access list than the usual one.`,
		read(0, "audit search evidence --pod shop/report-runner-6c9f7 --result ok --stage end", "CreateSymlink", "(LogOnly)"))
	s.step("Somebody has edited a record", `The same log, but another pod is to have asked for the service to be stopped. The first place that does not fit is named.`,
		read(1, "audit verify evidence-edited"+trust, "tampered: ", "record 59 was changed"))
	s.step("Somebody has put back an older log", `With the checkpoints of then, so that all of it fits, except the one that was held elsewhere.`,
		read(1, "audit verify evidence-rolled-back"+trust, "tampered: ", "records at its end are gone"))
}
