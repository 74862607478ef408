package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// columns writes rows as a table without holding all of them: widths grow with what comes, and never shrink.
type columns struct {
	p      printer
	widths []int
	rows   [][]string
}

// block is how many rows are looked at before their widths are settled.
const block = 200

func newColumns(w io.Writer, header ...string) *columns {
	return &columns{p: printer{w: w}, widths: make([]int, len(header)), rows: [][]string{header}}
}

// add takes the cells of a row. Two blanks end a column, so that a cell has none in its middle: callers' texts must not look like more columns.
func (c *columns) add(cells []string) {
	for i, cell := range cells {
		text := strings.TrimLeft(cell, " ")
		cells[i] = cell[:len(cell)-len(text)] + strings.ReplaceAll(text, "  ", ` \x20`)
	}
	if c.rows = append(c.rows, cells); len(c.rows) >= block {
		c.flush()
	}
}

// flush writes what waits.
func (c *columns) flush() {
	for _, row := range c.rows {
		for i, cell := range row {
			c.widths[i] = max(c.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range c.rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", c.widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	c.rows = c.rows[:0]
	c.p.printf("%s", b.String())
}
