package auditcmd

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress shows how far a long read is, on one line that is erased at its end.
type progress struct {
	w       io.Writer // nil unless it is a terminal
	started time.Time
	isShown bool
}

// patience is how long a command may take before progress is shown.
const patience = 2 * time.Second

// newProgress shows nothing unless w is a terminal.
func newProgress(w io.Writer) *progress {
	p := &progress{started: time.Now()}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.w = w
		}
	}
	return p
}

func (p *progress) show(done, total int64) {
	if p.w == nil || total <= 0 || time.Since(p.started) < patience {
		return
	}
	const width = 30
	full := int(width * min(done, total) / total)
	_, _ = fmt.Fprintf(p.w, "\r[%s%s] %d of %d MiB", strings.Repeat("#", full), strings.Repeat(".", width-full), done>>20, total>>20)
	p.isShown = true
}

func (p *progress) clear() {
	if p.isShown {
		_, _ = fmt.Fprint(p.w, "\r"+strings.Repeat(" ", 72)+"\r")
	}
}
