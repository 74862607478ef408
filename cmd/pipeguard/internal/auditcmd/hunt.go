package auditcmd

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/deploy/siem/sigma"
	"github.com/pipeguard/pipeguard/internal/audit/hunt"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// auditFinding is one line of JSON; its fields are promised to users.
type findingReport struct {
	Rule   string          `json:"rule"`
	ID     string          `json:"id"`
	Level  string          `json:"level"`
	Time   time.Time       `json:"time"`
	Record json.RawMessage `json:"record"`
}

func newHunt() *cobra.Command {
	var dir, proxyLog string
	var lists bool
	cmd := &cobra.Command{
		Use:   "hunt LOG...",
		Short: "Find audit records that detection rules describe",
		Long: `Asks detection rules of all records that fit, and prints what they find: bursts of denials, denials that were not enforced, processes of
the node on a pipe, denials by the request policy, operations whose end is not known, tokens that prove nothing, expired bundles,
bundles older than before, and more; --list names all. With --proxy-log it also asks the rules about the diagnostic log of the
proxy, such as the one for pipes that another process serves.

Rules are Sigma: --rules names a directory of *.yml files that takes the place of those that come with pipeguard. What is understood
are detections of fields with the modifiers contains, startswith, endswith, re, exists, lt, lte, gt, gte, cased, all and fieldref,
conditions with and, or, not, parentheses, 1 of and all of, and correlations event_count with gte. All else is refused.

` + aboutLogs + `

` + aboutFilters + `

With -o json it prints one object a line: rule, id, level, time, record.

Exit code: 0 if nothing is found, 1 if something is, or if the log was changed, 2 if a rule is not understood, 3 if lines are not records or records are missing.`,
		Example: `  pipeguard audit hunt copy/ --since today
  pipeguard audit hunt copy/ --level high --proxy-log pipeguard.log -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if lists && len(args) == 0 {
				return nil
			}
			return logs(cmd, args)
		},
	}
	out := cli.AddFormat(cmd)
	read := addReading(cmd)
	level := cli.AddChoice(cmd, "level", "", "the least level of rules that are asked", hunt.Levels()...)
	cli.Text(cmd, &dir, "rules", "", "directory of rules")
	cli.Text(cmd, &proxyLog, "proxy-log", "", "diagnostic log of the proxy, JSON lines")
	cmd.Flags().BoolVar(&lists, "list", false, "print the rules, and ask nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		rules, err := huntRules(dir)
		if err != nil {
			return err
		}
		if lists {
			return listRules(cmd, rules)
		}
		h := &hunter{asked: hunt.New(rules), least: slices.Index(hunt.Levels(), level.Value), p: cli.NewPrinter(cmd.OutOrStdout())}
		if !out.IsJSON() {
			h.table = cli.NewColumns(h.p, "LEVEL", "TIME", "SEQ", "COUNT", "CALLER", "METHOD", "RULE")
		}
		in, records, err := read(args)
		if err != nil {
			return err
		}
		return h.hunt(in, records, proxyLog)
	}
	return cmd
}

func huntRules(dir string) ([]*hunt.Rule, error) {
	var from fs.FS = sigma.Rules
	if dir != "" {
		from = os.DirFS(dir)
	}
	rules, err := hunt.Load(from)
	if err != nil {
		return nil, cli.BadInput(fmt.Errorf("rules in %s: %w", cmp.Or(dir, "this program"), err))
	}
	return rules, nil
}

func listRules(cmd *cobra.Command, rules []*hunt.Rule) error {
	p := cli.NewPrinter(cmd.OutOrStdout())
	table := cli.NewColumns(p, "LEVEL", "LOG", "RULE")
	for _, r := range rules {
		table.Add(r.Level, cmp.Or(r.Service, hunt.ServiceAudit), inert.Line(r.Title))
	}
	table.Flush()
	return p.Done(nil)
}

// hunter prints the findings of rules.
type hunter struct {
	asked *hunt.Hunter
	least int // index of the least level
	p     *cli.Printer
	table *cli.Columns // nil for JSON
	count int
}

func (h *hunter) hunt(in *reading, records iter.Seq2[query.Record, error], proxyLog string) (err error) {
	for r, err := range records {
		if err != nil {
			return in.done(cli.BadInput(err))
		}
		found, err := h.asked.Ask(hunt.ServiceAudit, r.Raw, r.Time)
		if err != nil {
			return cli.BadInput(fmt.Errorf("%s, line %d: %w", r.File, r.Line, err))
		}
		for _, finding := range found {
			method := ""
			if r.What != nil {
				method = middle(cmp.Or(r.What.Method, r.What.FullMethod, r.What.Verb))
			}
			h.show(finding, []string{fmt.Sprint(r.Seq), fmt.Sprint(r.Count()), shortCaller(query.Caller(&r.Event)), method})
		}
	}
	if proxyLog != "" {
		err = cli.WithFile(in.cmd, proxyLog, func(r io.Reader) error { return h.diagnostics(r, in) })
	}
	if h.table != nil {
		h.table.Flush()
	}
	if lost := h.asked.Lost(); lost > 0 {
		in.note(fmt.Errorf("%d callers were forgotten for want of memory: their bursts may have gone unseen", lost))
	}
	switch {
	case err != nil:
		return in.judged(err)
	case in.bad > 0:
		return h.p.Done(in.done(nil))
	case h.count > 0:
		return h.p.Done(in.judged(cli.No(nil)))
	}
	return h.p.Done(in.judged(nil))
}

// maxDiagnostic bounds a line of the diagnostic log: 64 KiB holds the longest stack.
const maxDiagnostic = 64 << 10

func (h *hunter) diagnostics(r io.Reader, in *reading) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxDiagnostic)
	for number := 1; lines.Scan(); number++ {
		var head struct {
			Time time.Time `json:"ts"`
		}
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			in.note(fmt.Errorf("diagnostic log, line %d: %w", number, err))
			continue
		}
		found, err := h.asked.Ask(hunt.ServiceProxy, lines.Bytes(), head.Time)
		if err != nil {
			in.note(fmt.Errorf("diagnostic log, line %d: %w", number, err))
		}
		for _, finding := range found {
			h.show(finding, []string{fmt.Sprint(number), "1", "", ""})
		}
	}
	if err := lines.Err(); err != nil {
		return cli.BadInput(fmt.Errorf("read the diagnostic log: %w", err))
	}
	return nil
}

func (h *hunter) show(f hunt.Finding, where []string) {
	if slices.Index(hunt.Levels(), f.Rule.Level) < h.least {
		return
	}
	h.count++
	if h.table == nil {
		h.p.JSONLine(findingReport{f.Rule.Title, f.Rule.ID, f.Rule.Level, f.Time.UTC(), f.Doc})
		return
	}
	cells := append(append([]string{f.Rule.Level, f.Time.UTC().Format("01-02 15:04:05")}, where...), f.Rule.Title)
	for i := range cells {
		cells[i] = cmp.Or(inert.Line(strings.TrimSpace(cells[i])), "-")
	}
	h.table.Add(cells...)
}
