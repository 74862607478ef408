package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/plain"
	"github.com/pipeguard/pipeguard/internal/audit"
)

func newAuditShow() *cobra.Command {
	var isWide bool
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print audit records as a table",
		Long: `Prints one row for each record: number, time (UTC), stage, caller, pipe, method, target, decision, outcome.

A caller is shown as user, image and process number, a decision with its rule. A method that was served under another
name is shown with both. Of many targets the first two are shown. With --wide images are full paths, all targets are
shown, and the id of each request, the rule and the text of errors are added.
Characters that could act on a terminal are shown as <U+001B>. Whether records are missing is the question of
"pipeguard audit check".

Exit code: 0 if every line is a record, 2 if not; lines that are none are named on standard error.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFile(cmd, args[0], func(r io.Reader) error { return auditShow(cmd, r, isWide) })
		},
	}
	cmd.Flags().BoolVarP(&isWide, "wide", "w", false, "full image paths, request ids, rules and error texts")
	return cmd
}

func auditShow(cmd *cobra.Command, r io.Reader, isWide bool) error {
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	p := printer{w: table}
	header := []string{"SEQ", "TIME", "STAGE", "CALLER", "PIPE", "METHOD", "TARGET", "DECISION", "OUTCOME"}
	if isWide {
		header = append(header, "ID", "RULE", "ERROR")
	}
	p.printf("%s\n", strings.Join(header, "\t"))
	var bad error
	for event, err := range audit.Read(r) {
		if err != nil {
			bad = errors.Join(bad, err)
			continue
		}
		p.printf("%s\n", strings.Join(row(event, isWide), "\t"))
	}
	if p.err == nil {
		p.err = table.Flush()
	}
	if bad != nil {
		return p.done(badInput(bad))
	}
	return p.done(nil)
}

func row(e audit.Event, isWide bool) []string {
	cells := []string{
		fmt.Sprint(e.Seq), e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), string(e.Stage), caller(e, isWide),
		"", "", "", "", outcome(e.Outcome),
	}
	if e.What != nil {
		cells[4], cells[5], cells[6] = e.What.Pipe, method(e.What), targets(e.What.Targets, isWide)
	}
	if e.Type == audit.TypeAdmission {
		cells[6] = strings.TrimSuffix(pod(e.Who)+": "+cells[6], ": ")
	}
	if e.Decision != nil {
		cells[7] = decision(e.Decision)
	}
	if isWide {
		rule, text := "", ""
		if e.Decision != nil {
			rule = e.Decision.Rule
		}
		if e.Outcome != nil {
			text = e.Outcome.Error
		}
		cells = append(cells, e.ID, rule, text)
	}
	for i, cell := range cells {
		if cells[i] = plain.Line(cell); cell == "" {
			cells[i] = "-"
		}
	}
	return cells
}

// caller names who asked. The pod of an admission did not ask, it was asked for.
func caller(e audit.Event, isWide bool) string {
	who := e.Who
	if who == nil {
		return ""
	}
	var parts []string
	if who.Pod != nil && e.Type != audit.TypeAdmission {
		parts = append(parts, pod(who))
	}
	if who.User != nil {
		parts = append(parts, firstOf(who.User.Name, who.User.SID))
	}
	if who.Process != nil {
		exe := who.Process.Exe
		if !isWide {
			exe = exe[strings.LastIndexAny(exe, `/\`)+1:]
		}
		parts = append(parts, fmt.Sprintf("%s[%d]", exe, who.Process.PID))
	}
	if len(parts) == 0 {
		return "assurance:" + who.Assurance
	}
	return strings.Join(parts, " ")
}

func pod(who *audit.Who) string {
	if who == nil || who.Pod == nil {
		return ""
	}
	return who.Pod.Namespace + "/" + who.Pod.Name
}

// method names the operation, and behind it the served method where that has another name.
func method(w *audit.What) string {
	served := w.FullMethod[strings.LastIndexByte(w.FullMethod, '/')+1:]
	switch {
	case w.Method == "" && w.FullMethod == "":
		return w.Verb
	case w.Method == "":
		return w.FullMethod
	case served == "" || served == w.Method:
		return w.Method
	}
	return w.Method + " (as " + served + ")"
}

// maxTargets keeps rows readable: a driver's pod has six pipes and more.
const maxTargets = 2

func targets(list []audit.Target, isWide bool) string {
	var values []string
	for i, t := range list {
		if i == maxTargets && !isWide {
			return fmt.Sprintf("%s and %d more", strings.Join(values, ", "), len(list)-i)
		}
		value := t.Value
		if t.Canonical != "" && t.Canonical != t.Value {
			value += " = " + t.Canonical
		}
		values = append(values, value)
	}
	return strings.Join(values, ", ")
}

func decision(d *audit.Decision) string {
	s := string(d.Effect)
	if d.Reason != "" {
		s += ": " + d.Reason
	}
	if !strings.Contains(d.Reason, d.Rule) {
		s += " [" + d.Rule + "]"
	}
	if d.Mode != "" && d.Mode != "Enforce" {
		s += " (" + d.Mode + ")"
	}
	return s
}

func outcome(o *audit.Outcome) string {
	if o == nil {
		return ""
	}
	return strings.TrimSpace(o.Result + " " + o.Code)
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
