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
		Short: "Print audit records as a table, or everything about one request",
		Long: `With the id of a request, or the number of one of its records, it prints everything the log says about it: the intent and its end with
every field, the policy and bundle that decided, the outcome, its connection, and the records before and after it. With -o json it prints
one object: schema "pipeguard.dev/audit-show/v1", and the records as they are in the log: records, connection, before, after.

Without an id it prints one row for each record:

  SEQ       number of the record in the log; in the stream of a webhook, in its session; ! before it marks a record that
            does not continue the one before it
  TIME      month, day and time, UTC
  STAGE     open, close    the program opened or closed the file
            intent         the proxy allowed a request and is about to carry it out; its end follows
            end            a request or an admission was answered; a request without an intent was refused
            panic          a request was ended by a bug in the proxy
            summary        a number of requests or connections of one caller were refused
            orphan         the proxy found at its start an intent without an end
            prune          old segments are about to be deleted
            closed         a connection ended
  CALLER    namespace/pod/container of a caller whose pod was verified, else the user, with host: before it if the process
            is in no container; then program and process number, (HostProcess), (token) if a token of its pod was verified,
            and (doubt) if something about it is unknown; a program's name with unusual characters is in quotes, and a long
            one is shortened in the middle
  PIPE      without the leading csi-proxy-
  METHOD    its name in the newest API, followed by the name it was called by if that differs
  TARGET    what the request acts on: the first of several, long ones shortened in the middle; for an admission the pod and
            its pipes, guarded ones first
  OUTCOME   ok, denied, idle (a connection without a request), or the code of an error; (5000 times) marks a summary of that
            many, (caller left) a caller that did not wait for the answer
  DECISION  with the rule that allowed, or the reason of a denial; (permits …) names dangerous steps that the rule also
            allows, (LogOnly) marks a denial that was not enforced

With --wide nothing is shortened: full times, stages as in the file, programs with their directories and users, all targets
as written and canonical, results with their codes, and in addition the id of each request, the rule, error texts, the
caller's service account, its image, what is unknown about it, and the policy that decided with its revisions.
Characters that could act on a terminal are shown as <U+001B>. To find out whether records were changed
or are missing, use "pipeguard audit verify".

LOG is a directory of segments, a file of records, or - for standard input.

` + aboutTrust + `

Exit code: 0 if every line is a record, 1 if the log was changed, 2 if no record has the id or number, 3 if lines are not records or records
are missing; standard error names such lines.`,
		Example: `  pipeguard audit show /var/log/pipeguard/audit
  pipeguard audit show /var/log/pipeguard/audit EJTKWYK2GE2O4SSCLOAUXOHGCS
  pipeguard audit show /var/log/pipeguard/audit 100
  pipeguard audit show --wide /var/log/pipeguard/audit | less -S`,
		Args: showArguments,
	}
	cmd.Flags().BoolVarP(&isWide, "wide", "w", false, "shorten nothing; add request ids, rules, errors, service accounts, images and policies")
	cmd.Flags().IntVar(&neighbours, "neighbours", 3, "with an id: how many records to show before and after it")
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

// showArguments accepts a log and an optional id.
func showArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return nil
	}
	if len(args) > 2 {
		return cli.BadInput(fmt.Errorf("takes a log and an id, and not %d: %q is too many", len(args), args[2]))
	}
	return cli.Argument("a log")(cmd, args)
}

// maxNamedLines bounds how many lines that are not records are named: a file of another kind has only such lines.
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
