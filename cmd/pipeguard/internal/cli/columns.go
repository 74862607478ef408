package cli

import (
	"strings"
	"unicode/utf8"
)

// Columns writes rows as a table without holding all of them: column widths grow as rows come, and never shrink.
type Columns struct {
	p      *Printer
	widths []int
	rows   [][]string
}

const (
	// block is how many rows are looked at before their widths are settled.
	block = 200
	// maxWidth bounds a column: a longer cell moves the rest of its own row, and widens no other.
	maxWidth = 100
)

// NewColumns returns a table with a header.
func NewColumns(p *Printer, header ...string) *Columns {
	return &Columns{p: p, widths: make([]int, len(header)), rows: [][]string{header}}
}

// Add adds a row. Two blanks end a column, so that a cell has none in its middle: callers' texts must not look like more columns.
func (c *Columns) Add(cells ...string) {
	for i, cell := range cells {
		text := strings.TrimLeft(cell, " ")
		cells[i] = cell[:len(cell)-len(text)] + strings.ReplaceAll(text, "  ", ` \x20`)
	}
	if c.rows = append(c.rows, cells); len(c.rows) >= block {
		c.Flush()
	}
}

// Flush writes the rows that are held.
func (c *Columns) Flush() {
	for _, row := range c.rows {
		for i, cell := range row {
			if width := utf8.RuneCountInString(cell); width <= maxWidth {
				c.widths[i] = max(c.widths[i], width)
			}
		}
	}
	var b strings.Builder // written at once: a row is not cut in two
	for _, row := range c.rows {
		for i, cell := range row[:len(row)-1] {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", max(0, c.widths[i]-utf8.RuneCountInString(cell))+2))
		}
		b.WriteString(row[len(row)-1] + "\n")
	}
	c.p.Printf("%s", b.String())
	c.rows = c.rows[:0]
}
