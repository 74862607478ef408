package auditcmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// aboutFilters describes the filters in the help of each command that has them.
const aboutFilters = `Filters: a flag given twice matches either value, and different flags must all match. In texts * stands for any characters, case is
ignored, and an empty value matches records without one. A value that no record can have is refused; standard error names values that no
record of the log has. --where takes the same filters as terms, namespace=kube-system method!=Path*, with "" around values with blanks.
A path matches itself and everything below it, as written or as resolved, and also records that do not list all that their requests
named, as a pipe matches admissions of objects with more pipes than the record lists; standard error says how many requests that is. A
time is now, today, yesterday, 2h (ago), 2026-03-01, 2026-03-01T12:30 or RFC 3339, all in UTC; --until is exclusive. A summary of
refusals matches if some of its requests may have ended between --since and --until; standard error says how many that is.`

// filterFlags are the fields that have a flag of their own, with their help.
var filterFlags = []struct{ name, help string }{
	{"since", "from this time on"},
	{"until", "before this time"},
	{"pod", "name, namespace/name or uid of the pod"},
	{"namespace", "namespace of the pod"},
	{"sa", "service account of the pod, name or namespace/name"},
	{"container", "name or id of the container"},
	{"image", "image of the container"},
	{"user", "SID or name of the account"},
	{"program", "program of the caller, with or without directory"},
	{"host", "yes for callers outside containers, or no"},
	{"token", "yes, no, stale, unbound or the id of a token"},
	{"pipe", "pipe, with or without csi-proxy-; for admissions any requested pipe"},
	{"group", "API group"},
	{"version", "served version"},
	{"method", "method, by its name in the newest API or as called"},
	{"path", "absolute path of a target, or of a directory above it"},
	{"decision", "allow, deny, logonly (a denial not enforced) or none; - is none, as in tables"},
	{"effect", "allow or deny, enforced or not"},
	{"rule", "rule that decided"},
	{"reason", "reason of the decision"},
	{"policy", "policy that decided"},
	{"revision", "revision of the policy, or of the bundle it came in"},
	{"result", "ok, error, denied, rejected, panic, orphaned or idle; or a code, as in tables"},
	{"code", "status code of the answer: gRPC by name or number, or HTTP"},
	{"id", "id of the request"},
	{"conn", "id of the connection"},
	{"seq", "record numbers, counted from 1: 7, 7-9, 7- or -9"},
	{"type", "request, connection, admission or log"},
	{"stage", "intent, end, panic, orphan, closed, open, close, prune, or as in the log"},
	{"node", "node that wrote the record"},
}

// addFilter adds the flags, and returns a function that builds the filter from their values.
func addFilter(cmd *cobra.Command) func(now time.Time) (*query.Filter, error) {
	values := make([]*[]string, len(filterFlags))
	for i, f := range filterFlags {
		values[i] = cmd.Flags().StringArray(f.name, nil, f.help)
		if words := query.Words(f.name); words != nil {
			cli.Completes(cmd, f.name, words...)
		}
	}
	where := cmd.Flags().StringArray("where", nil, "terms FIELD=VALUE or FIELD!=VALUE, see above")
	return func(now time.Time) (*query.Filter, error) {
		f := &query.Filter{}
		for i, flag := range filterFlags {
			for _, value := range *values[i] {
				if err := f.Want(flag.name, value, now); err != nil {
					return nil, cli.BadInput(fmt.Errorf("--%s %w", flag.name, err))
				}
			}
		}
		for _, text := range *where {
			if err := f.Parse(text, now); err != nil {
				return nil, cli.BadInput(fmt.Errorf("--where %w", err))
			}
		}
		return f, nil
	}
}
