package export

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// header names the columns. Names are added at the end, never changed.
var header = []string{
	"seq", "time", "type", "stage", "session", "id", "assurance", "namespace", "pod", "serviceaccount", "container", "image", "hostprocess",
	"user", "sid", "program", "pid", "host", "token", "doubt", "pipe", "group", "version", "method", "fullmethod", "verb", "targets", "decision",
	"reason", "rule", "policy", "revision", "bundle", "result", "code", "error", "latencymicroseconds", "connection", "node",
	"count", "first", "moretargets",
}

type table struct {
	w       io.Writer
	isBegun bool
}

// plainCell is a cell without anything that separates cells in some country or program. All others are quoted.
var plainCell = regexp.MustCompile(`^[A-Za-z0-9._:-]*$`)

// write writes a row as RFC 4180 has it.
func (t *table) write(cells []string) error {
	quoted := make([]string, len(cells))
	for i, c := range cells {
		if quoted[i] = c; !plainCell.MatchString(c) {
			quoted[i] = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
		}
	}
	_, err := io.WriteString(t.w, strings.Join(quoted, ",")+"\r\n")
	return err
}

func (t *table) begin() error {
	if t.isBegun {
		return nil
	}
	t.isBegun = true
	return t.write(header)
}

func (t *table) Flush() error { return t.begin() }

func (t *table) Record(r query.Record) error {
	if err := t.begin(); err != nil {
		return err
	}
	cells := cellsOf(&r.Event)
	for i := range cells {
		cells[i] = inert.Cell(cells[i])
	}
	return t.write(cells)
}

func cellsOf(e *audit.Event) []string {
	whole := parts(e)
	w, what, d, o := whole.who, whole.what, whole.decision, whole.outcome
	var targets []string
	for _, t := range what.Targets {
		targets = append(targets, t.Kind+" "+query.Listed(t.Value))
	}
	latency, first := "", ""
	if e.Outcome != nil {
		latency = strconv.FormatInt(o.LatencyUS, 10)
	}
	if !o.First.IsZero() {
		first = rfc3339(o.First)
	}
	return []string{
		strconv.FormatUint(e.Seq, 10), rfc3339(e.Time), string(e.Type), string(e.Stage), e.Session, e.ID,
		w.Assurance, w.Pod.Namespace, w.Pod.Name, w.Pod.ServiceAccount, w.Container.Name, w.Container.Image, mark(w.Container.HostProcess),
		w.User.Name, w.User.SID, w.Process.Exe, positive(w.Process.PID), mark(w.Host), cmp.Or(w.TokenState, mark(w.Token)), w.Doubt,
		what.Pipe, what.Group, what.Version, what.Method, what.FullMethod, what.Verb, strings.Join(targets, "; "),
		query.Decision(e), d.Reason, d.Rule, d.Policy.Name, d.Policy.Revision, positive(d.Policy.Bundle),
		o.Result, o.Code, o.Error, latency, whole.conn, whole.node,
		strconv.FormatUint(e.Count(), 10), first, positive(what.MoreTargets),
	}
}

// positive is a number in decimal digits, and empty for one that is not above 0.
func positive[N int | uint32 | uint64](n N) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func mark(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
