package auditcmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// auditStats is the JSON form of the result; its fields are promised to users.
type statsReport struct {
	Schema string        `json:"schema"` // pipeguard.dev/audit-stats/v1
	By     []string      `json:"by"`
	Groups []groupReport `json:"groups"`
	Others *groupReport  `json:"others,omitempty"`
	Doubts []string      `json:"doubts,omitempty"`
}

type groupReport struct {
	Values    []string  `json:"values"`
	Records   int       `json:"records"`
	Allowed   int       `json:"allowed"`
	Denied    int       `json:"denied"`
	LogOnly   int       `json:"logOnly"`
	Failed    int       `json:"failed"`
	Timed     int       `json:"timed"`
	MeanUS    int64     `json:"meanMicroseconds"`
	LongestUS int64     `json:"longestMicroseconds"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
}

func newStats() *cobra.Command {
	var by []string
	var top int
	var hasIntents bool
	cmd := &cobra.Command{
		Use:   "stats LOG...",
		Short: "Count audit records by who, what, why or when",
		Long: `Counts the records that fit by one thing or several, each request once: intents are left out. Records of the log itself are left out.

  RECORDS  how many, of which ALLOWED, DENIED and LOGONLY (denied and not enforced)
  FAILED   ended with an error or a panic, or were rejected before any rule was asked
  MEAN, LONGEST  time from arrival to answer, of requests with a record of their own, and not of connections

` + aboutLogs + `

` + aboutFilters + `

--by takes caller, minute, hour, day and the fields of filters: ` + strings.Join(query.TallyKeys(), ", ") + `.
Of more than 10000 groups those that came last count as one, "(others)". In the table long programs, methods, targets and errors stand without their middle.

With -o json it prints one object: schema "pipeguard.dev/audit-stats/v1", by, and groups and others with values, records, allowed, denied,
logOnly, failed, timed (how many the next two are of), meanMicroseconds, longestMicroseconds, first, last; doubts says which of the counted requests may not fit the filters.

Exit code: 0, 1 if the log was changed, or 3 if lines are not records or records are missing.`,
		Example: `  pipeguard audit stats copy/ --by caller,reason --decision deny
  pipeguard audit stats copy/ --by hour --since yesterday --until today`,
		Args: logs,
	}
	out := cli.AddFormat(cmd)
	read := addReading(cmd)
	cmd.Flags().StringSliceVar(&by, "by", []string{"caller"}, "what to count by, with commas between")
	cli.Completes(cmd, "by", query.TallyKeys()...)
	cmd.Flags().IntVar(&top, "top", 0, "print so many groups; 0 is all")
	cmd.Flags().BoolVar(&hasIntents, "intents", false, "count intents too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if top < 0 {
			return cli.BadInput(errors.New("--top must not be negative"))
		}
		tally, err := query.NewTally(by)
		if err != nil {
			return cli.BadInput(fmt.Errorf("--by %w", err))
		}
		in, records, err := read(args)
		if err != nil {
			return err
		}
		counts := func(e *audit.Event) bool {
			return e.Type != audit.TypeLog && (hasIntents || e.Stage != audit.StageRequestReceived)
		}
		in.borrow(tally.Parts, counts)
		for r, err := range records {
			if err != nil {
				return in.done(cli.BadInput(err))
			}
			if counts(&r.Event) {
				tally.Add(&r.Event)
			}
		}
		return printStats(cmd, tally, by, top, out, in)
	}
	return cmd
}

func printStats(cmd *cobra.Command, tally *query.Tally, by []string, top int, out *cli.Choice, in *reading) error {
	groups := tally.Groups()
	if top > 0 && len(groups) > top {
		groups = groups[:top]
	}
	if out.IsJSON() {
		report := statsReport{Schema: "pipeguard.dev/audit-stats/v1", By: by, Groups: make([]groupReport, 0, len(groups)), Doubts: in.doubts()}
		for _, g := range groups {
			report.Groups = append(report.Groups, statOf(g))
		}
		if tally.Rest.Records > 0 {
			rest := statOf(&tally.Rest)
			report.Others = &rest
		}
		p := cli.NewPrinter(cmd.OutOrStdout())
		p.JSON(report)
		return p.Done(in.done(nil))
	}
	names := []string{"RECORDS", "ALLOWED", "DENIED", "LOGONLY", "FAILED", "MEAN", "LONGEST", "FIRST", "LAST"}
	for _, key := range by {
		names = append(names, strings.ToUpper(key))
	}
	p := cli.NewPrinter(cmd.OutOrStdout())
	table := cli.NewColumns(p, names...)
	for _, g := range groups {
		table.Add(statRow(g, shortValues(by, g.Values))...)
	}
	if tally.Rest.Records > 0 {
		others := make([]string, len(by))
		others[0] = "(others)"
		table.Add(statRow(&tally.Rest, others)...)
	}
	table.Flush()
	return p.Done(in.done(nil))
}

func statOf(g *query.Group) groupReport {
	return groupReport{
		Values: g.Values, Records: g.Records, Allowed: g.Allowed, Denied: g.Denied, LogOnly: g.LogOnly, Failed: g.Failed,
		Timed: g.Timed, MeanUS: g.Mean().Microseconds(), LongestUS: g.Longest.Microseconds(), First: g.First.UTC(), Last: g.Last.UTC(),
	}
}

// shortValues are values for a table, where what others chose loses its middle if it is long. The groups are of the whole values.
func shortValues(by, values []string) []string {
	short := slices.Clone(values)
	for i, key := range by {
		switch key {
		case "caller":
			short[i] = shortCaller(short[i])
		case "method", "target", "program", "error":
			short[i] = middle(short[i])
		}
	}
	return short
}

func statRow(g *query.Group, values []string) []string {
	mean, longest := "-", "-"
	if g.Timed > 0 {
		mean, longest = g.Mean().Round(time.Microsecond).String(), g.Longest.String()
	}
	cells := []string{
		strconv.Itoa(g.Records), strconv.Itoa(g.Allowed), strconv.Itoa(g.Denied), strconv.Itoa(g.LogOnly), strconv.Itoa(g.Failed),
		mean, longest,
		g.First.UTC().Format("01-02 15:04:05"), g.Last.UTC().Format("01-02 15:04:05"),
	}
	for _, v := range values {
		cells = append(cells, cmp.Or(inert.Line(v), "-"))
	}
	return cells
}
