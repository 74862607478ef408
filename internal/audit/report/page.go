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
	counted := func(title, note string, g *groups, empty string, columns ...string) section {
		rows, rest := g.top()
		return section{title, note, append([]string{"calls", "first", "last"}, columns...), rowsOf(rows, true), rest, empty}
	}
	listed := func(title, note string, l list, empty string, columns ...string) section {
		return section{title, note, append([]string{"time"}, columns...), rowsOf(l.rows, false), l.rest, empty}
	}
	return []section{
		counted("Denials by caller and reason", "Each row with its last record.", &s.denials, "Nothing was denied.", "caller", "method", "effect", "rule", "reason"),
		listed("Operations whose end is not known", "They were let through. Whether the host was changed, the log cannot say.", s.orphans(), "Every operation that was let through has its end.", "caller", "method", "why"),
		listed("Policy revisions", "Where another revision began to decide.", s.policies, "No record names a policy.", "node", "policy", "revision", "before"),
		counted("Failures by caller", "Let through and failed, or rejected before any rule was asked.", &s.failures, "Nothing failed.", "caller", "method", "result", "code"),
		counted("Connections that were refused", "", &s.refused, "No connection was refused.", "caller", "why"),
		counted("Callers", "", &s.callers, "There were no calls.", "caller"),
		listed("The log itself", "Where it was opened and closed.", s.openings, "No record says when the log was opened.", "stage", "session", "what was there"),
	}
}

// rowsOf are the rows of a table whose first column is a time, or how many calls there were and when.
func rowsOf(list []*group, isCounted bool) (rows []row) {
	for _, g := range list {
		head := []string{stamp(g.first)}
		if isCounted {
			head = []string{fmt.Sprint(g.count), stamp(g.first), stamp(g.last)}
		}
		rows = append(rows, row{clean(append(head, g.cells...)), g.record.String(), pretty(g.record.raw)})
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

func (p place) String() string {
	return fmt.Sprintf("record %d, %s line %d", p.seq, inert.Line(p.file), p.line)
}

// pretty puts a record on several lines.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, inert.JSON(raw), "", "  "); err != nil {
		return inert.Line(string(raw))
	}
	return strings.TrimSpace(b.String())
}
