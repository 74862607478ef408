package inert

import "io"

// Terminal returns a writer whose text reaches w as Text makes it. It is the last resort of a program that prints what others chose: only Line keeps a
// value from being several lines.
func Terminal(w io.Writer) io.Writer { return terminal{w} }

type terminal struct{ to io.Writer }

func (t terminal) Write(text []byte) (int, error) {
	if _, err := io.WriteString(t.to, Text(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
