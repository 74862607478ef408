package report

import (
	"fmt"
	"time"
)

// chart is the timeline in the units of its drawing: two bands, all calls above and those that went wrong below, each with its own
// scale, since a handful of denials would not be seen beside thousands of calls.
type chart struct {
	Width, Height int
	Bars          []bar
	Top, Bottom   int // calls at the full height of a band
	First, Last   time.Time
	Each          string // how long a bar is
	Base, Floor   int    // where the bands stand
	HasSummed     bool   // some bars hold calls that may belong to bars before
}

type bar struct {
	X, Y, W, H int
	Class      string
	Title      string
}

// Sizes in units of the drawing.
const (
	chartWidth = 1200
	bandHeight = 110
	bandGap    = 30
)

func (t *timeline) chart() *chart {
	if len(t.columns) == 0 {
		return nil
	}
	first, last := t.ends()
	each := widths[t.width]
	seconds := int64(each / time.Second)
	c := &chart{
		Width: chartWidth, Height: 2*bandHeight + bandGap, Base: bandHeight, Floor: 2*bandHeight + bandGap,
		First: time.Unix(first*seconds, 0).UTC(), Last: time.Unix((last+1)*seconds, 0).UTC(), Each: each.String(), Top: 1, Bottom: 1,
	}
	for _, col := range t.columns {
		c.Top, c.Bottom = max(c.Top, col.total()), max(c.Bottom, col.denied+col.logOnly+col.failed)
	}
	step := max(2, int(chartWidth/(last-first+1)))
	step = min(step, 40)
	for at := first; at <= last; at++ {
		col, ok := t.columns[at]
		if !ok {
			continue
		}
		x := int(at-first) * step
		title := fmt.Sprintf("%s: %d let through, %d denied, %d denied and let through, %d failed",
			stamp(time.Unix(at*seconds, 0)), col.allowed, col.denied, col.logOnly, col.failed)
		also := ""
		if col.summed > 0 && t.index(col.since) < at {
			title += fmt.Sprintf("; up to %d of them, counted in summaries, in the time since %s", col.summed, stamp(time.Unix(col.since, 0)))
			also, c.HasSummed = " summed", true
		}
		add := func(floor, y, n, scale int, class string) int {
			if n == 0 {
				return y
			}
			h := max(1, n*bandHeight/scale)
			h = min(h, bandHeight-(floor-y))
			c.Bars = append(c.Bars, bar{x, y - h, step - 1, h, class + also, title})
			return y - h
		}
		add(c.Base, c.Base, col.total(), c.Top, "all")
		y := add(c.Floor, c.Floor, col.denied, c.Bottom, "denied")
		y = add(c.Floor, y, col.logOnly, c.Bottom, "logonly")
		add(c.Floor, y, col.failed, c.Bottom, "failed")
	}
	return c
}
