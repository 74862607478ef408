package acl

import (
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// longestPipe keeps a full name below the 256 characters that CreateNamedPipe takes.
const longestPipe = 200

func isFullName(group string) bool { return access.Pipe{Group: group}.IsForwarded() }

func parseFullName(text string) (pipePattern, error) {
	name := foldPipe(text[len(access.FullName):])
	switch {
	case !isPipeName(name):
		return pipePattern{}, fmt.Errorf("pipe %q: want up to %d letters, digits, dots, dashes and underscores after %s, a letter or digit first and no dot last",
			text, longestPipe, access.FullName)
	case strings.HasPrefix(name, access.PipePrefix):
		return pipePattern{}, fmt.Errorf("pipe %q: pipes of the node API are written GROUP-VERSION", text)
	}
	return pipePattern{group: access.FullName + name}, nil
}

// isPipeName accepts what needs no second thought, in lower case; the names of pipes could be nearly anything.
// A dot at the end is nothing to Windows, so there must be none.
func isPipeName(s string) bool {
	for _, r := range s {
		if !isWordRune(r) && r != '-' && r != '.' {
			return false
		}
	}
	return s != "" && len(s) <= longestPipe && !strings.ContainsRune("-._", rune(s[0])) && s[len(s)-1] != '.'
}

// foldPipe makes one spelling of a pipe's name, whose case does not count. Letters beyond ASCII stay as they are:
// some of them fold to ASCII and would be taken for another pipe.
func foldPipe(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}
