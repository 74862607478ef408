package report

import (
	"bytes"
	_ "embed" // page.html
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

//go:embed page.html
var page string

// About is what the page says of itself.
type About struct {
	Names   []string  // of files and directories
	Made    time.Time // now
	Filter  string    // what was left out; empty if nothing was
	Doubts  []string  // which of what was not left out may not fit
	Version string    // of the program
}

// section is a table of the page.
type section struct {
	Title, Note string
	Columns     []string
	Rows        []row
	Rest        int
	Empty       string
}

type row struct {
	Cells  []string
	Place  string
	Record string
}

type count struct {
	Name  string
	Count int
	Class string
}

// Write writes the page: one HTML file without script, which asks the network for nothing.
func (s *Summary) Write(w io.Writer, about About, verdict Verdict) error {
	t, err := template.New("page").Funcs(template.FuncMap{"inert": inert.Line, "stamp": stamp, "word": isWord}).Parse(page)
	if err != nil {
		return fmt.Errorf("parse the page: %w", err)
	}
	return t.Execute(w, struct {
		About
		Verdict  Verdict
		Words    string
		Summary  *Summary
		Counts   []count
		Chart    *chart
		Sections []section
		Bad      []string
		BadCount int
		First    time.Time
		Last     time.Time
	}{about, verdict, words(verdict.Status, s.badCount), s, s.counts(), s.time.chart(), s.sections(), s.bad, s.badCount, s.first, s.last})
}

// words are the verdict on a log of which so many lines could not be read.
func words(status string, bad int) string {
	switch status {
	case OK:
		if bad > 0 {
			return "Verified: unchanged, but with lines that are no records"
		}
		return "Verified: whole and unchanged"
	case Incomplete:
		return "Incomplete: not everything is covered"
	case Unverified:
		return "Not verified"
	}
	return "Tampered with: do not trust this log"
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func (s *Summary) counts() []count {
	all := []count{{"records", s.records, ""}, {"requests ended", s.ends, ""}, {"intents", s.intents, ""}, {"admissions", s.admissions, ""}, {"connections", s.connections, ""}}
	for _, result := range slices.Sorted(maps.Keys(s.outcome)) {
		class := ""
		if result == "denied" || result == "panic" {
			class = "bad"
		}
		all = append(all, count{result, s.outcome[result], class})
		if len(all) >= 20 { // a log that was made up
			break
		}
	}
	return append(all, count{"lines that are no records", s.badCount, map[bool]string{true: "bad"}[s.badCount > 0]})
}

func (s *Summary) sections() []section {
	denials, denialsRest := s.denials.top()
	failures, failuresRest := s.failures.top()
	callers, callersRest := s.callers.top()
	refused, refusedRest := s.refused.top()
	orphans := s.orphans()
	counted := []string{"calls", "first", "last"}
	return []section{
		{"Denials by caller and reason", "Each row with its last record.", append(counted, "caller", "method", "effect", "rule", "reason"), counts(denials), denialsRest, "Nothing was denied."},
		{"Operations whose end is not known", "They were let through. Whether the host was changed, the log cannot say.", []string{"time", "caller", "method", "why"}, plainRows(orphans.rows), orphans.rest, "Every operation that was let through has its end."},
		{"Policy revisions", "Where another revision began to decide.", []string{"time", "node", "policy", "revision", "before"}, plainRows(s.policies.rows), s.policies.rest, "No record names a policy."},
		{"Failures by caller", "Let through and failed, or rejected before any rule was asked.", append(counted, "caller", "method", "result", "code"), counts(failures), failuresRest, "Nothing failed."},
		{"Connections that were refused", "", append(counted, "caller", "why"), counts(refused), refusedRest, "No connection was refused."},
		{"Callers", "", append(counted, "caller"), counts(callers), callersRest, "There were no calls."},
		{"The log itself", "Where it was opened and closed.", []string{"time", "stage", "session", "what was there"}, plainRows(s.openings.rows), s.openings.rest, "No record says when the log was opened."},
	}
}

func counts(list []*group) (rows []row) {
	for _, g := range list {
		cells := append([]string{fmt.Sprint(g.count), stamp(g.first), stamp(g.last)}, g.cells...)
		rows = append(rows, row{clean(cells), place(g), pretty(g.record.Raw)})
	}
	return rows
}

func plainRows(list []*group) (rows []row) {
	for _, g := range list {
		rows = append(rows, row{clean(append([]string{stamp(g.first)}, g.cells...)), place(g), pretty(g.record.Raw)})
	}
	return rows
}

// isWord says that a cell is one short word, such as the name of a method, which is not to be broken.
func isWord(cell string) bool { return len(cell) <= 20 && !strings.Contains(cell, " ") }

func clean(cells []string) []string {
	for i := range cells {
		if cells[i] = inert.Line(cells[i]); cells[i] == "" {
			cells[i] = "-"
		}
	}
	return cells
}

func place(g *group) string {
	return fmt.Sprintf("record %d, %s line %d", g.record.Seq, inert.Line(g.record.File), g.record.Line)
}

// pretty puts a record on several lines.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, inert.JSON(raw), "", "  "); err != nil {
		return inert.Line(string(raw))
	}
	return strings.TrimSpace(b.String())
}
