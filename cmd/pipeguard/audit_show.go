package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func newAuditShow() *cobra.Command {
	var isWide bool
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print audit records as a table",
		Long: `Prints one row for each record:

  SEQ       number of the record in its session
  TIME      month, day and time, UTC
  STAGE     open, close    the program opened or closed the file
            intent         the proxy let a request through and is about to act; its end follows
            end            a request or an admission was answered; without an intent before it, it was refused
            panic          a request ended by a fault of the proxy
            closed         a connection ended
  CALLER    namespace/pod/container of a caller whose pod was proven, else the user, with host: before it if no container
            holds the process; then program and process number, (HostProcess), (token) if a token of its pod was verified,
            and (doubt) if something could not be found out
  PIPE      without the leading csi-proxy-
  METHOD    in the words of the newest API; if it was served under another name, that one behind it
  TARGET    what it was about: the first of many, long ones without their middle; of an admission the pod and its pipes
  OUTCOME   ok, denied, idle (a connection without a request), or the code of an error; (caller left) says that nobody
            waited for it any more
  DECISION  with the rule that allowed, or why not; (permits …) names dangerous steps that the rule allowed too, (LogOnly)
            says that a denial was not enforced

With --wide nothing is shortened: full times, stages as in the file, programs with their directories and users, all targets
as written and canonical, results with their codes, and in addition the id of each request, the rule, error texts, the
caller's service account, its image, what is in doubt about it, and the policy that decided with its revisions.
Characters that could act on a terminal are shown as <U+001B>. Whether records are missing is the question of
"pipeguard audit check".

Exit code: 0 if every line is a record, 2 if not; lines that are none are named on standard error.`,
		Example: `  pipeguard audit show audit.jsonl
  pipeguard audit show --wide audit.jsonl | less -S`,
		Args: argument("a file of records"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFile(cmd, args[0], func(r io.Reader) error { return auditShow(cmd, r, isWide) })
		},
	}
	cmd.Flags().BoolVarP(&isWide, "wide", "w", false, "shorten nothing; add request ids, rules, errors, service accounts, images and policies")
	return cmd
}

// maxNamedLines bounds how many lines that are no records are named: a file of another kind has nothing else.
const maxNamedLines = 10

func auditShow(cmd *cobra.Command, r io.Reader, isWide bool) error {
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	p := printer{w: table}
	p.printf("%s\n", strings.Join(header(isWide), "\t"))
	var bad error
	count := 0
	for event, err := range audit.Read(r) {
		if err != nil {
			if count++; count <= maxNamedLines {
				bad = errors.Join(bad, err)
			}
			continue
		}
		p.printf("%s\n", strings.Join(row(event, isWide), "\t"))
	}
	if more := count - maxNamedLines; more > 0 {
		bad = errors.Join(bad, fmt.Errorf("and %d more lines that are no records", more))
	}
	if p.err == nil {
		p.err = table.Flush()
	}
	if bad != nil {
		return p.done(badInput(bad))
	}
	return p.done(nil)
}
