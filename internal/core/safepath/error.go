package safepath

import (
	"fmt"
	"strings"
	"unicode"
)

// Error says why a path was refused.
type Error struct {
	Path    string // as the caller wrote it: it may hold anything and be of any length
	Reason  string
	Outside bool // well-formed, but not within a working directory
}

// Error keeps the words of CSI Proxy's own refusals in front, because drivers look for them:
// "path: … is not within context path: …", "path contains invalid characters…", "not an absolute Windows path…".
func (e *Error) Error() string {
	if e.Outside {
		return fmt.Sprintf("path: %s %s", printable(e.Path), e.Reason)
	}
	return fmt.Sprintf("%s: %s", e.Reason, printable(e.Path))
}

// printable cuts a path to a length that fits a log line, and quotes it if it could forge one.
func printable(path string) string {
	const limit = 2 * MaxLength
	rest := ""
	if len(path) > limit {
		rest = fmt.Sprintf("… (%d bytes)", len(path))
		path = strings.ToValidUTF8(path[:limit], "")
	}
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		path = fmt.Sprintf("%q", path)
	}
	return path + rest
}
