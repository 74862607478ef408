package auditcmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

func newShow() *cobra.Command {
	var isWide bool
	var neighbours int
	cmd := &cobra.Command{
		Use:   "show LOG [ID | SEQ]",
		Short: "Print audit records as a table, or all that is known of one request",
		Long: `With the id of a request, or the number of one of its records, it prints all that the log says of it: the intent and its end with every field, the policy and bundle that
decided, what became of it, the connection that it came on, and the records beside it. With -o json it prints one object: schema
"pipeguard.dev/audit-show/v1", and the records as they stand in the log: records, connection, before, after.

Without an id it prints one row for each record:

  SEQ       number of the record in the log; in the stream of a webhook, in its session; with ! before it, the record
            does not follow on the one before it
  TIME      month, day and time, UTC
  STAGE     open, close    the program opened or closed the file
            intent         the proxy let a request through and is about to act; its end follows
            end            a request or an admission was answered; without an intent before it, it was refused
            panic          a request ended by a fault of the proxy
            summary        so many requests or connections of one caller were refused
            orphan         a start of the proxy found an intent that nothing had ended
            prune          old segments are about to be deleted
            closed         a connection ended
  CALLER    namespace/pod/container of a caller whose pod was proven, else the user, with host: before it if no container
            holds the process; then program and process number, (HostProcess), (token) if a token of its pod was verified,
            and (doubt) if something could not be found out; a program's name with unusual characters stands in quotes, a long
            one without its middle
  PIPE      without the leading csi-proxy-
  METHOD    its name in the newest API; if it was served under another name, that one behind it
  TARGET    what it was about: the first of many, long ones without their middle; of an admission the pod and its pipes,
            guarded ones first
  OUTCOME   ok, denied, idle (a connection without a request), or the code of an error; (5000 times) says that the record
            is a summary of so many, (caller left) that the caller no longer waited
  DECISION  with the rule that allowed, or why not; (permits …) names dangerous steps that the rule allowed too, (LogOnly)
            says that a denial was not enforced

With --wide nothing is shortened: full times, stages as in the file, programs with their directories and users, all targets
as written and canonical, results with their codes, and in addition the id of each request, the rule, error texts, the
caller's service account, its image, what is in doubt about it, and the policy that decided with its revisions.
Characters that could act on a terminal are shown as <U+001B>. Whether records were changed or are missing is the question of
"pipeguard audit verify".

LOG is a directory of segments, a file of records, or - for standard input.

` + aboutTrust + `

Exit code: 0 if every line is a record, 1 if the log was changed, 2 if no record has the id or number, 3 if lines are no records or records are missing; lines that are
none are named on standard error.`,
		Example: `  pipeguard audit show /var/log/pipeguard/audit
  pipeguard audit show /var/log/pipeguard/audit EJTKWYK2GE2O4SSCLOAUXOHGCS
  pipeguard audit show /var/log/pipeguard/audit 100
  pipeguard audit show --wide /var/log/pipeguard/audit | less -S`,
		Args: showArguments,
	}
	cmd.Flags().BoolVarP(&isWide, "wide", "w", false, "shorten nothing; add request ids, rules, errors, service accounts, images and policies")
	cmd.Flags().IntVar(&neighbours, "neighbours", 3, "with an id: how many records beside it, on each side")
	out := cli.AddFormat(cmd)
	trust := addTrust(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case neighbours < 0 || neighbours > query.MaxNeighbours:
			return cli.BadInput(fmt.Errorf("--neighbours must be between 0 and %d", query.MaxNeighbours))
		case len(args) == 2:
			return showStory(trust.reading(cmd, nil), args[0], args[1], neighbours, out)
		case out.IsJSON():
			return cli.BadInput(errors.New("-o json is for one request: name its id, or use \"pipeguard audit search -o jsonl\""))
		}
		return showAll(trust.reading(cmd, nil), args[0], isWide)
	}
	return cmd
}

// showArguments wants a log and perhaps an id.
func showArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return nil
	}
	if len(args) > 2 {
		return cli.BadInput(fmt.Errorf("takes a log and an id, and not %d: %q is too many", len(args), args[2]))
	}
	return cli.Argument("a log")(cmd, args)
}

// maxNamedLines bounds how many lines that are no records are named: a file of another kind has nothing else.
const maxNamedLines = 10

func showAll(in *reading, name string, isWide bool) error {
	records, err := in.records([]string{name})
	if err != nil {
		return err
	}
	form := "table"
	if isWide {
		form = "wide"
	}
	s := newSink(in.cmd.OutOrStdout(), form)
	for r, err := range records {
		if err != nil {
			return written(s, in, cli.BadInput(err))
		}
		if s.record(r); s.err() != nil {
			break
		}
	}
	return written(s, in, nil)
}
