package acl

import (
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// pipePattern is a parsed GROUP-VERSION; an empty half is "*". With a full name the group is that name, in lower case.
type pipePattern struct{ group, version string }

func parsePipe(text string) (pipePattern, error) {
	if isFullName(text) {
		return parseFullName(text)
	}
	if text == "*" {
		return pipePattern{}, nil
	}
	group, version, ok := strings.Cut(text, "-")
	if !ok {
		return pipePattern{}, fmt.Errorf("pipe %q: want GROUP-VERSION, GROUP-*, *-VERSION or *", text)
	}
	p := pipePattern{group, version}
	for _, half := range []*string{&p.group, &p.version} {
		if *half == "*" {
			*half = ""
		} else if !isWord(*half) {
			return pipePattern{}, fmt.Errorf("pipe %q: %q is neither * nor a name of lower-case letters and digits", text, *half)
		}
	}
	return p, nil
}

func isWord(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func (p pipePattern) covers(group, version string) bool {
	if isFullName(group) {
		return p.group == foldPipe(group)
	}
	if p.version != "" && p.version != version {
		return false
	}
	if p.group != "" {
		return p.group == group
	}
	return !access.MustBeSpelled(group)
}

// patternsOf returns all patterns that cover a pipe: the first n of four.
func patternsOf(group, version string) (patterns [4]pipePattern, n int) {
	if isFullName(group) {
		return [4]pipePattern{{foldPipe(group), ""}}, 1
	}
	patterns = [4]pipePattern{{group, version}, {group, ""}, {"", version}, {"", ""}}
	if access.MustBeSpelled(group) {
		return patterns, 2
	}
	return patterns, 4
}
