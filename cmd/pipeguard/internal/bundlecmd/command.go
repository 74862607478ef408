// Package bundlecmd is "pipeguard bundle": it builds, verifies and shows the signed bundles of nodes.
package bundlecmd

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/bundle"
)

// NewCommand returns "pipeguard bundle".
func NewCommand() *cobra.Command {
	return cli.Group("bundle", "Build, verify and show the signed bundles that carry policies to nodes", `A bundle is an OPA bundle (a .tar.gz) of the PipePolicies and Rego that one pool of nodes decides by, signed, with a
revision that rises and a time at which it ends. In a cluster the controller makes them; these commands are for files,
for nodes without a cluster, and for finding out why one was refused.`,
		newBuild(), newVerify(), newShow(),
	)
}

// addNow adds the flag --now, a time; without it, the time is that of the clock.
func addNow(cmd *cobra.Command, now *time.Time, usage string) {
	cmd.Flags().TimeVar(now, "now", time.Time{}, []string{time.RFC3339}, usage+" (such as 2026-01-02T15:04:05Z); without it, the clock")
}

func orNow(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now()
	}
	return t
}

// bundleReport is the JSON form of a bundle; its fields are promised to users.
type bundleReport struct {
	Schema          string        `json:"schema"` // pipeguard.dev/bundle-report/v1
	OK              bool          `json:"ok"`
	Verified        bool          `json:"verified"`
	Reason          bundle.Reason `json:"reason,omitempty"`
	Message         string        `json:"message,omitempty"`
	Revision        uint64        `json:"revision,omitempty"`
	MinimumRevision uint64        `json:"minimumRevision,omitempty"`
	PolicyRevision  string        `json:"policyRevision,omitempty"`
	Audience        string        `json:"audience,omitempty"`
	Key             bundle.KeyID  `json:"key,omitempty"`
	IssuedAt        time.Time     `json:"issuedAt,omitzero"`
	ExpiresAt       time.Time     `json:"expiresAt,omitzero"`
	Policies        []string      `json:"policies,omitempty"`
	Modules         []string      `json:"modules,omitempty"`
}

const bundleReportSchema = "pipeguard.dev/bundle-report/v1"

// print writes a report; one that is not OK is a "no".
func (r bundleReport) print(cmd *cobra.Command, out *cli.Choice) error {
	return out.Print(cmd, r, r.text).Answer(r.OK)
}

func (r bundleReport) text(p *cli.Printer) {
	if !r.OK {
		p.Printf("refused: %s\n", inert.Line(strings.TrimPrefix(r.Message, "bundle refused: ")))
	}
	if r.Revision == 0 {
		return
	}
	signed := "signed by"
	if !r.Verified {
		signed = "NOT VERIFIED, says it is signed by"
	}
	p.Printf("revision   %d\n", r.Revision)
	if r.MinimumRevision > 0 {
		p.Printf("minimum    %d\n", r.MinimumRevision)
	}
	if r.PolicyRevision != "" {
		p.Printf("policies   %s\n", inert.Line(r.PolicyRevision))
	}
	p.Printf("pool       %s\nissued     %s\nexpires    %s\n%s  %s\n", inert.Line(r.Audience), r.IssuedAt.Format(time.RFC3339), r.ExpiresAt.Format(time.RFC3339), signed, inert.Line(string(r.Key)))
	for _, name := range r.Policies {
		p.Printf("PipePolicy %s\n", inert.Line(name))
	}
	for _, name := range r.Modules {
		p.Printf("module     %s\n", inert.Line(name))
	}
}
