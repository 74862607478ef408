package winsvc

import "strings"

// escapeArg is syscall.EscapeArg of Windows, which other systems lack. It doubles backslashes before a quote and
// escapes quotes, and encloses what has a space, a tab or nothing in it.
func escapeArg(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\"") {
		return s
	}
	enclose := s == "" || strings.ContainsAny(s, " \t")
	var b strings.Builder
	if enclose {
		b.WriteByte('"')
	}
	slashes := 0
	for i := range len(s) {
		switch s[i] {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes+1)) // those before it again, and its own
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(s[i])
	}
	if enclose {
		b.WriteString(strings.Repeat(`\`, slashes)) // or the last one would escape the closing quote
		b.WriteByte('"')
	}
	return b.String()
}

// SplitCommandLine is the inverse of CommandLine.
func SplitCommandLine(line string) []string {
	var args []string
	for line = strings.TrimLeft(line, " \t"); line != ""; line = strings.TrimLeft(line, " \t") {
		var arg string
		arg, line = nextArg(line)
		args = append(args, arg)
	}
	return args
}

// nextArg follows the rules of the C runtime: backslashes count only before a quote, and two quotes within quotes are one.
func nextArg(line string) (arg, rest string) {
	var b strings.Builder
	quoted, slashes := false, 0
	for i := 0; i < len(line); i++ {
		c := line[i]
		if c == '\\' {
			slashes++
			continue
		}
		if c != '"' {
			b.WriteString(strings.Repeat(`\`, slashes))
			slashes = 0
			if !quoted && (c == ' ' || c == '\t') {
				return b.String(), line[i:]
			}
			b.WriteByte(c)
			continue
		}
		b.WriteString(strings.Repeat(`\`, slashes/2))
		odd := slashes%2 == 1
		slashes = 0
		switch {
		case odd:
			b.WriteByte('"')
		case quoted && i+1 < len(line) && line[i+1] == '"':
			b.WriteByte('"')
			i++
		default:
			quoted = !quoted
		}
	}
	return b.String() + strings.Repeat(`\`, slashes), ""
}
