package auditcmd

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/report"
)

func TestAuditSearchOfALogThatChangesAfterItsVerificationExitsWithOne(t *testing.T) {
	dir, keys, _ := keptLog(t)
	cmd := &cobra.Command{}
	in := addTrust(cmd).reading(cmd, nil)
	var said strings.Builder
	cmd.SetErr(&said)
	cmd.SetContext(t.Context())
	in.trust.keys = []string{keys}
	records, err := in.records([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	file := onlySegment(t, dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("ResponseComplete"), []byte("RequestReceived1"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range records {
		if err != nil {
			t.Fatal(err)
		}
	}
	if code, message := cli.Verdict(in.reported(report.Verdict{Status: report.Unverified}, 0, true)); code != cli.ExitNo {
		t.Errorf("of a page: exit code %d, %q", code, message)
	}
	if code, message := cli.Verdict(in.done(nil)); code != cli.ExitNo || !strings.Contains(said.String(), "not verified: what was read is not what was verified") {
		t.Errorf("exit code %d, %q; said %q", code, message, said.String())
	}
}
