package policy

import (
	"fmt"
	"regexp"
	"strings"
)

// OPA parses by recursion, and takes time that grows with the square of the depth. The sets and objects that it builds while
// it parses find their elements by hashes that are easily made equal: that of an array is the sum of its elements', that of a
// number is its integer. Finding a place among n equal ones takes time in proportion to n, as does a key of an object that
// was there before. So the text is bounded before anything is parsed.
const (
	// maxNesting is far more than a reader can follow.
	maxNesting = 200
	// maxTextFactor is how many modules may reach the bounds of one.
	maxTextFactor = 4
	// maxAnnotation bounds the entries of one annotation, see textCounts.annotations. The built-in policies reach 17.
	maxAnnotation = 128
)

// textCounts are what costs more than in proportion in a text. Strings and comments count as well: that is simpler than a
// scanner, which could be led astray. Tables of more lines belong into the parameters.
type textCounts struct{ brackets, commas, numbers, entries int }

// maxText bounds the [ and {, the commas, the numbers with a point, an exponent or many digits, and the entries of annotations of one module.
var maxText = textCounts{brackets: 1024, commas: 8192, numbers: 512, entries: 1024}

func (c *textCounts) add(o textCounts) {
	c.brackets, c.commas, c.numbers, c.entries = c.brackets+o.brackets, c.commas+o.commas, c.numbers+o.numbers, c.entries+o.entries
}

// excess says which of the bounds is exceeded, times as often as they may be reached.
func (c textCounts) excess(times int) string {
	for _, b := range []struct {
		what    string
		n, most int
	}{
		{"arrays, sets and objects", c.brackets, maxText.brackets},
		{"commas", c.commas, maxText.commas},
		{"numbers with a point, an exponent or more than 15 digits", c.numbers, maxText.numbers},
		{"lines and commas of annotations", c.entries, maxText.entries},
	} {
		if b.n > times*b.most {
			return fmt.Sprintf("more than %d %s: large lists and tables belong into the parameters", times*b.most, b.what)
		}
	}
	return ""
}

// checkText counts before anything recursive sees the text. It returns a problem at the first bound that a file exceeds.
func checkText(file, text string) (textCounts, *Problem) {
	var c textCounts
	depth, number, line, col := 0, 0, 1, 0
	for i := 0; i < len(text); i++ {
		col++
		switch b := text[i]; b {
		case '\n':
			line, col = line+1, 0
		case '(', '[', '{':
			depth++
			if b != '(' {
				c.brackets++
			}
		case ')', ']', '}':
			depth = max(0, depth-1)
		case ',':
			c.commas++
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if n := oddNumber(text, i); n > 0 {
				c.numbers++
				number = n
				i, col = i+n-1, col+n-1
			}
		}
		message := c.excess(1)
		if depth > maxNesting {
			message = fmt.Sprintf("more than %d brackets inside one another", maxNesting)
		}
		if number > MaxNumber {
			message = fmt.Sprintf("a number of %d characters, and at most %d are taken", number, MaxNumber)
		}
		if message != "" {
			return c, &Problem{File: file, Line: line, Col: col, Code: CodeLimit, Message: message}
		}
	}
	problem := c.annotations(file, text)
	if message := c.excess(1); problem == nil && message != "" {
		problem = &Problem{File: file, Line: line, Col: 1, Code: CodeLimit, Message: message}
	}
	return c, problem
}

// yamlName is what an anchor or an alias of YAML begins with, and what stands before.
var yamlName = regexp.MustCompile(`(?:^|[^\pL\pN_])([&*])[^\s&*]`)

// annotations counts what may be entries of annotations, and refuses those that are too long, or have anchors and aliases. Each annotation is YAML, in which OPA's
// parser compares each key with each other, makes a message for each pair that is equal, and copies for each alias what it stands for: a few kilobytes become
// gigabytes. Keys stand on lines of their own or behind commas. What looks like that in the lines with a # from METADATA on is enough.
func (c *textCounts) annotations(file, text string) *Problem {
	if !strings.Contains(text, "METADATA") {
		return nil
	}
	hasAnchor, isOpen, line, entries := false, false, 0, 0
	problem := func(message string) *Problem {
		return &Problem{File: file, Line: line, Col: 1, Code: CodeLimit, Message: message}
	}
	for part := range strings.Lines(text) {
		line++
		_, comment, ok := strings.Cut(part, "#")
		switch {
		case !ok:
			isOpen, entries = false, 0
			continue
		case strings.Contains(comment, "METADATA"):
			isOpen = true
		}
		if isOpen {
			n := 1
			for _, r := range comment {
				switch r {
				case ',', '\r', '\u0085', '\u2028', '\u2029': // YAML ends a line there
					n++
				}
			}
			c.entries += n
			if entries += n; entries > maxAnnotation {
				return problem(fmt.Sprintf("more than %d lines and commas in one annotation", maxAnnotation))
			}
		}
		for _, m := range yamlName.FindAllStringSubmatch(comment, -1) {
			switch {
			case m[1] == "&":
				hasAnchor = true
			case hasAnchor:
				return problem("annotations have no anchors and aliases (&name, *name): write what they stand for")
			}
		}
	}
	return nil
}

// oddNumber is the length of a number that begins at i and may have the hash of others; 0 for any other.
func oddNumber(text string, i int) int {
	if i > 0 && isWordByte(text[i-1]) {
		return 0
	}
	n, odd := 1, false
	for ; i+n < len(text); n++ {
		switch b := text[i+n]; {
		case b == '.', b == 'e', b == 'E':
			odd = true
		case b >= '0' && b <= '9':
		case (b == '+' || b == '-') && (text[i+n-1] == 'e' || text[i+n-1] == 'E'):
		default:
			if odd || n > 15 {
				return n
			}
			return 0
		}
	}
	return 0 // nothing ends with a number
}

func isWordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
