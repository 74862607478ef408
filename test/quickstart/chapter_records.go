package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// records shows the audit records after both programs have stopped, and has them checked.
func records(ctx context.Context, s *story, st *stage) {
	s.chapter("The records: who did what")

	s.step("Every call is there",
		`Two lines for each call that was let through: the intent, on disk before the operation ran, and its end. One line
		for each refusal, and one for each connection when it closes. The table is shortened to fit; the file, and "audit show --wide", have all of it.`,
		func() error {
			out, err := show(ctx, s, st, st.auditFile)
			if err != nil {
				return err
			}
			return mentions(out, "Mkdir", "PathExists", "Rmdir", "StopService", "FormatVolume", "NewSmbGlobalMapping", "FormatEverything", "kubelet-evil", "pipeguard[")
		})

	s.step("Every judged pod is there",
		`The webhook records each decision in the same form. The ordinary pod is missing because there was nothing to decide.`,
		func() error {
			out, err := show(ctx, s, st, st.reviewsFile)
			if err != nil {
				return err
			}
			return mentions(out, "shop/web: ", "shop/web-again", "shop/web-once-more", "ops/disk-maintenance", "kube-system/csi-azuredisk-node-win-", "UPDATE", "PG001", "PG003", "PG004")
		})

	s.step("The password is not there",
		`The request that mapped the share is recorded with its fields, and what is secret is withheld by name.`,
		func() error {
			text, err := os.ReadFile(st.auditFile)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, `"RequestReceived"`) && strings.Contains(line, "NewSmbGlobalMapping") {
					s.show(line)
				}
			}
			if strings.Contains(string(text), fakehost.DataPassword) {
				return errors.New("a record has the password")
			}
			return mentions(string(text), `"password":"[redacted]"`, `"redacted":["password"]`)
		})

	s.step("No record is missing",
		`Numbers without a gap, and each intent with exactly one end.`,
		func() error {
			var faults []error
			for _, file := range []string{st.auditFile, st.reviewsFile} {
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
