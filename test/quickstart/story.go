package main

import (
	"fmt"
	"io"
	"strings"
)

// story prints what happens and counts what did not happen as announced.
type story struct {
	out     io.Writer
	isColor bool
	steps   int
	failed  []string
}

func (s *story) chapter(title string) {
	s.printf("\n%s\n%s\n", s.paint("1", title), strings.Repeat("=", len(title)))
}

// step announces, acts and says whether the result was the announced one. It returns false if it was not.
func (s *story) step(title, announcement string, act func() error) bool {
	s.steps++
	s.printf("\n%s\n", s.paint("1", fmt.Sprintf("%d. %s", s.steps, title)))
	s.printf("   %s\n\n", wrap(announcement, 97, "   "))
	if err := act(); err != nil {
		s.failed = append(s.failed, fmt.Sprintf("%d. %s: %v", s.steps, title, err))
		s.printf("\n   %s %v\n", s.paint("31", "NOT as expected:"), err)
		return false
	}
	s.printf("\n   %s\n", s.paint("32", "as expected"))
	return true
}

// show prints what a program said, set off from the story's own words.
func (s *story) show(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		s.printf("   | %s\n", strings.TrimRight(line, "\n"))
	}
}

func (s *story) printf(format string, args ...any) {
	// If the terminal is gone there is nobody to tell; the exit code still says how it went.
	_, _ = fmt.Fprintf(s.out, format, args...)
}

func (s *story) paint(code, text string) string {
	if !s.isColor {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// wrap breaks text into lines of at most width characters; all but the first begin with indent.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	length := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case length+1+len(word) > width:
			b.WriteString("\n" + indent)
			length = 0
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	return b.String()
}
