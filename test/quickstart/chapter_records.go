package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// records shows the audit records after both programs have stopped, and has them checked.
func records(ctx context.Context, s *story, st *stage) {
	s.chapter("The records: who did what")

	s.step("Every call is there",
		`Two lines for each call that was let through: the intent, on disk before the operation ran, and its end. One line
		for each refusal, and one for each connection when it closes. The table is shortened to fit; the file, and "audit show --wide", have all of it.`,
		func() error {
			out, err := show(ctx, s, st, st.proxy.records)
			if err != nil {
				return err
			}
			return mentions(out, "Mkdir", "PathExists", "Rmdir", "StopService", "FormatVolume", "PartitionDisk", "NewSmbGlobalMapping", "FormatEverything", "kubelet-evil", "pipeguard[")
		})

	s.step("Every judged pod is there",
		`The webhook records each decision in the same form. The ordinary pod is missing because there was nothing to decide.`,
		func() error {
			out, err := show(ctx, s, st, st.webhook.records)
			if err != nil {
				return err
			}
			return mentions(out, "shop/web: ", "shop/web-again", "shop/web-once-more", "ops/disk-maintenance", "kube-system/csi-azuredisk-node-win-", "UPDATE", "PG001", "PG003", "PG004")
		})

	s.step("A decision is made again",
		`The record of the partitioning that was refused holds all that the policy was shown. It is asked once more, and says the same.
		With a changed configuration this tells, before it is rolled out, what it would have decided.`,
		func() error { return replay(ctx, s, st) })

	s.step("The password is not there",
		`The request that mapped the share is recorded with its fields, and what is secret is withheld by name.`,
		func() error {
			text, err := linesOf(st.proxy.records)
			if err != nil {
				return err
			}
			for line := range strings.Lines(text) {
				if strings.Contains(line, `"RequestReceived"`) && strings.Contains(line, "NewSmbGlobalMapping") {
					s.show(line)
				}
			}
			if strings.Contains(text, fakehost.DataPassword) {
				return errors.New("a record has the password")
			}
			return mentions(text, `"password":"[redacted]"`, `"redacted":["password"]`)
		})

	s.step("No record is missing",
		`Numbers without a gap, and each intent with exactly one end.`,
		func() error {
			var faults []error
			for _, file := range st.files() {
				out, errOut, code, err := output(ctx, st.programs.pipeguard, "audit", "check", file)
				s.show("$ pipeguard audit check " + file + "\n" + out + errOut)
				if err == nil && code != 0 {
					err = fmt.Errorf("%s is not consistent", file)
				}
				faults = append(faults, err)
			}
			return errors.Join(faults...)
		})
}

// replay asks the request policy again about the last call that it refused.
func replay(ctx context.Context, s *story, st *stage) error {
	e, err := findRecord(st.proxy.records, func(e *audit.Event) bool { return e.Decision.Rule == "PN002" })
	if err != nil {
		return err
	}
	out, errOut, code, err := output(ctx, st.programs.pipeguard, "policy", "eval", "--from-audit", st.proxy.records, "--id", e.ID, "--config", st.proxy.config)
	s.show(fmt.Sprintf("$ pipeguard policy eval --from-audit proxy.jsonl --id %s --config proxy.yaml\n%s%sexit code %d", e.ID, out, errOut, code))
	switch {
	case err != nil:
		return err
	case code != 0 || !strings.Contains(out, e.Decision.Policy.Revision):
		return errors.New("it is another decision, or that of another policy")
	}
	return nil
}

// show prints a file of records as a table and returns the table.
func show(ctx context.Context, s *story, st *stage, file string) (string, error) {
	out, errOut, code, err := output(ctx, st.programs.pipeguard, "audit", "show", file)
	if err != nil {
		return "", err
	}
	s.show("$ pipeguard audit show " + file + "\n" + out + errOut)
	if code != 0 {
		return "", fmt.Errorf("pipeguard audit show: exit code %d", code)
	}
	return out, nil
}

func mentions(text string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("no record mentions %q", word)
		}
	}
	return nil
}
