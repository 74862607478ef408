package policy

import "fmt"

// maxNesting is far more than a reader can follow. OPA parses and compiles by recursion and takes time that grows
// with the square of the depth.
const maxNesting = 200

// tooDeeplyNested counts brackets before anything recursive sees the text. Brackets in strings and comments count as
// well: that is simpler than a scanner, and 200 of them unclosed are nothing that a policy needs.
func tooDeeplyNested(file, text string) (Problem, bool) {
	depth, line, col := 0, 1, 0
	for i := range len(text) {
		col++
		switch text[i] {
		case '\n':
			line, col = line+1, 0
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return Problem{File: file, Line: line, Col: col, Code: CodeLimit, Message: fmt.Sprintf("more than %d brackets inside one another", maxNesting)}, true
			}
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
	}
	return Problem{}, false
}
