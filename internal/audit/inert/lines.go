package inert

import (
	"io"
	"slices"
)

// Lines returns a writer of JSON documents, of which each Write is one with a newline behind it. They reach w as JSON makes them, so that a diagnostic
// log may hold what callers say. Sync is w's, if it has one.
func Lines(w io.Writer) *LineWriter { return &LineWriter{w} }

// LineWriter is what Lines returns.
type LineWriter struct{ to io.Writer }

// Write implements io.Writer.
func (l *LineWriter) Write(line []byte) (int, error) {
	out := line
	if slices.ContainsFunc(line, func(b byte) bool { return b >= 0x7F }) {
		body, end := line, ""
		if n := len(line); line[n-1] == '\n' {
			body, end = line[:n-1], "\n"
		}
		out = append(JSON(body), end...)
	}
	if _, err := l.to.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Sync flushes what was written.
func (l *LineWriter) Sync() error {
	if s, ok := l.to.(interface{ Sync() error }); ok {
		return s.Sync()
	}
	return nil
}
