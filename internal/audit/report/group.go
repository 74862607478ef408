package report

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// group is a row that stands for several records.
type group struct {
	cells       []string
	count       int
	first, last time.Time
	record      place // of the last one
}

// place is a record, and where it stands.
type place struct {
	seq  uint64
	file string
	line int
	raw  []byte
}

func placeOf(r query.Record) place { return place{r.Seq, r.File, r.Line, bytes.Clone(r.Raw)} }

// groups are rows by what they have in common. Callers choose names, so there are at most max; the rest is counted.
type groups struct {
	max  int
	rows map[string]*group
	rest int
	key  []byte
}

func (g *groups) add(r query.Record, cells ...string) {
	if g.rows == nil {
		g.rows = map[string]*group{}
	}
	g.key = g.key[:0]
	for _, cell := range cells {
		g.key = query.AppendKey(g.key, cell)
	}
	row := g.rows[string(g.key)]
	if row == nil {
		if len(g.rows) >= g.max {
			g.rest += int(r.Count()) // #nosec G115 -- bounded
			return
		}
		row = &group{cells: own(cells), first: r.Begin()}
		g.rows[string(g.key)] = row
	}
	if begin := r.Begin(); begin.Before(row.first) {
		row.first = begin
	}
	row.count += int(r.Count()) // #nosec G115 -- bounded
	row.last, row.record = r.Time, place{r.Seq, r.File, r.Line, append(row.record.raw[:0], r.Raw...)}
}

// own copies texts, rather than keep the lines that they are parts of.
func own(cells []string) []string {
	out := make([]string, len(cells))
	for i, cell := range cells {
		out[i] = strings.Clone(cell)
	}
	return out
}

// top returns the largest, as many as are shown, and how many records the others stand for.
func (g *groups) top() (rows []*group, rest int) {
	rows = slices.SortedFunc(maps.Values(g.rows), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), slices.Compare(a.cells, b.cells))
	})
	rest = g.rest
	for _, row := range rows[min(maxRows, len(rows)):] {
		rest += row.count
	}
	return rows[:min(maxRows, len(rows))], rest
}

// list is the first rows of something, each with its record; what comes later is counted.
type list struct {
	max  int
	rows []*group
	rest int
}

func (l *list) add(r query.Record, cells ...string) {
	if len(l.rows) >= l.max {
		l.rest++
		return
	}
	l.rows = append(l.rows, &group{cells: own(cells), count: 1, first: r.Time, last: r.Time, record: placeOf(r)})
}
