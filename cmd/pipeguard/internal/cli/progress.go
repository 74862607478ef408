package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Progress shows how far a long read is, on one line that is erased at its end.
type Progress struct {
	w       io.Writer // nil unless it is a terminal
	started time.Time
	isShown bool
}

// patience is how long a command may take before progress is shown.
const patience = 2 * time.Second

// progressWidth is how much of a line Clear erases. No text is longer.
const progressWidth = 72

// NewProgress shows nothing unless w is a terminal.
func NewProgress(w io.Writer) *Progress {
	p := &Progress{started: time.Now()}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.w = w
		}
	}
	return p
}

// Bytes shows how many bytes of a total are read.
func (p *Progress) Bytes(done, total int64) {
	if total <= 0 {
		return
	}
	const width = 30
	full := int(width * min(done, total) / total)
	p.show(fmt.Sprintf("[%s%s] %d of %d MiB", strings.Repeat("#", full), strings.Repeat(".", width-full), done>>20, total>>20))
}

// Count shows how many things of a kind are read, of a number that is not known. The kind is text of the program's own.
func (p *Progress) Count(done int, kind string) { p.show(fmt.Sprintf("%d %s read", done, kind)) }

func (p *Progress) show(text string) {
	if p.w == nil || time.Since(p.started) < patience {
		return
	}
	_, _ = fmt.Fprintf(p.w, "\r%s", text)
	p.isShown = true
}

// Clear erases the line.
func (p *Progress) Clear() {
	if p.isShown {
		_, _ = fmt.Fprint(p.w, "\r"+strings.Repeat(" ", progressWidth)+"\r")
		p.isShown = false
	}
}
