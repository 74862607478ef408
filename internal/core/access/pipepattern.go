package access

import (
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// PipePattern is a parsed GROUP-VERSION; an empty half is "*". With a full name the group is that name, in lower case.
type PipePattern struct{ Group, Version string }

// ParsePipe accepts GROUP-VERSION, GROUP-*, *-VERSION, * and the full name of a pipe that is none of the node API.
func ParsePipe(text string) (PipePattern, error) {
	if IsFullName(text) {
		return parseFullName(text)
	}
	if text == "*" {
		return PipePattern{}, nil
	}
	group, version, ok := strings.Cut(text, "-")
	if !ok {
		return PipePattern{}, fmt.Errorf("pipe %q: want GROUP-VERSION, GROUP-*, *-VERSION or *", text)
	}
	p := PipePattern{group, version}
	for _, half := range []*string{&p.Group, &p.Version} {
		if *half == "*" {
			*half = ""
		} else if *half == "" || strings.Trim(*half, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return PipePattern{}, fmt.Errorf("pipe %q: %q is neither * nor a name of lower-case letters and digits", text, *half)
		}
	}
	return p, nil
}

// longestPipe keeps a full name below the 256 characters that CreateNamedPipe takes.
const longestPipe = 200

// IsFullName says whether a group is the full name of a pipe that is none of the node API.
func IsFullName(group string) bool { return strings.HasPrefix(group, FullName) }

func parseFullName(text string) (PipePattern, error) {
	name := safepath.Lower(text[len(FullName):])
	switch {
	case !isPipeName(name):
		return PipePattern{}, fmt.Errorf("pipe %q: want up to %d letters, digits, dots, dashes and underscores after %s, a letter or digit first and no dot last",
			text, longestPipe, FullName)
	case strings.HasPrefix(name, PipePrefix):
		return PipePattern{}, fmt.Errorf("pipe %q: pipes of the node API are written GROUP-VERSION", text)
	}
	return PipePattern{Group: FullName + name}, nil
}

// isPipeName accepts what needs no second thought, in lower case; the names of pipes could be nearly anything.
// A dot at the end is nothing to Windows, so there must be none.
func isPipeName(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) && s[i] != '-' && s[i] != '.' {
			return false
		}
	}
	return s != "" && len(s) <= longestPipe && !strings.ContainsRune("-._", rune(s[0])) && s[len(s)-1] != '.'
}

// Covers says whether the pattern means a pipe. Without a group it leaves out those that MustBeSpelled.
func (p PipePattern) Covers(group, version string) bool {
	if IsFullName(group) {
		return p.Group == safepath.Lower(group)
	}
	if p.Version != "" && p.Version != version {
		return false
	}
	if p.Group != "" {
		return p.Group == group
	}
	return !MustBeSpelled(group)
}

func coversAny(pipes []PipePattern, group, version string) bool {
	for _, pipe := range pipes {
		if pipe.Covers(group, version) {
			return true
		}
	}
	return false
}

// patternsOf returns all patterns that cover a pipe: the first n of four.
func patternsOf(group, version string) (patterns [4]PipePattern, n int) {
	if IsFullName(group) {
		return [4]PipePattern{{safepath.Lower(group), ""}}, 1
	}
	patterns = [4]PipePattern{{group, version}, {group, ""}, {"", version}, {"", ""}}
	if MustBeSpelled(group) {
		return patterns, 2
	}
	return patterns, 4
}
