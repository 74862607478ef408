package query

import "fmt"

// SyntaxError is a fault in what a user wrote.
type SyntaxError struct {
	Text    string // all that was written
	Column  int    // of the first character that cannot be understood, in characters, counted from 1
	Problem string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%q, column %d: %s", e.Text, e.Column, e.Problem)
}

// fault makes a SyntaxError of a position in bytes.
func fault(text string, at int, format string, args ...any) error {
	return &SyntaxError{text, len([]rune(text[:min(at, len(text))])) + 1, fmt.Sprintf(format, args...)}
}
