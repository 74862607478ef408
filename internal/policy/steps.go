package policy

import (
	"fmt"
	"math"
	"regexp/syntax"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

const (
	// maxSteps bounds one call of a function that does not look at the time-out while it runs: a few hundred milliseconds.
	maxSteps = 1 << 24
	// maxInstructions bounds the program that a pattern becomes. Without repetitions, a pattern of maxRegex bytes has fewer.
	maxInstructions = 4 * maxRegex
	// comparison is the time for a comparison with a value of the same hash, in steps.
	comparison = 4
	// smallText is the size of a JSON text whose members are too few to be worth a look.
	smallText = 32 << 10
)

// MaxNumber bounds the text of a number, in bytes, wherever one comes from. To compare two takes time in proportion to the square of it, which nothing
// interrupts, and one call of sort or the making of a set compares thousands.
const MaxNumber = 512

// steps has the most steps that a call takes, for each allowed function whose time grows faster than its operands. It is asked before the
// function runs.
var steps = map[string]func(operands []*ast.Term) int64{
	"indexof":        product, // of texts that are not ASCII
	"json.filter":    collisions,
	"json.remove":    collisions,
	"json.unmarshal": unmarshalling,
	"object.filter":  collisions,
	"object.remove":  collisions,
	"object.subset":  subset,
	"regex.find_n":   matching,
	"regex.is_valid": func(o []*ast.Term) int64 { return times(int64(len(stringOf(o[0]))), maxSteps/maxRegex) },
	"regex.match":    matching,
	"regex.split":    matching,
	"to_number":      converting,
	"trim":           product, // with a set of characters that is not ASCII
	"trim_left":      product,
	"trim_right":     product,
	"union":          merging,
}

func product(operands []*ast.Term) int64 {
	return times(int64(len(stringOf(operands[0]))), int64(len(stringOf(operands[1]))))
}

// subset is the time for a part of an array, which is looked for at each place.
func subset(operands []*ast.Term) int64 {
	if _, ok := operands[0].Value.(*ast.Array); !ok {
		return 0
	}
	return times(length(operands[0].Value), nodes(operands[1]))
}

// matching is the most that a pattern takes for a text: each of its instructions for each byte. See bounded for its size.
func matching(operands []*ast.Term) int64 {
	pattern, text := stringOf(operands[0]), stringOf(operands[1])
	size := int64(maxInstructions)
	if !strings.Contains(pattern, "{") { // which is what repeats
		size = 4 * (int64(len(pattern)) + 1)
	}
	return times(size, int64(len(text)))
}

// collisions is the time for a set of the keys that the second operand names: each is compared with all that have its hash. A path names
// each of its parts.
func collisions(operands []*ast.Term) int64 {
	equal := map[int]int64{}
	key := func(t *ast.Term) { equal[t.Hash()]++ }
	elements(operands[1], func(t *ast.Term) {
		key(t)
		elements(t, key)
		if path, ok := t.Value.(ast.String); ok && strings.ContainsAny(string(path), "/~") {
			for part := range strings.SplitSeq(string(path), "/") {
				key(ast.StringTerm(ofPointer.Replace(part)))
			}
		}
	})
	return comparisons(equal)
}

// merging is the time for a set of the members of all sets in the operand: each may have few of one hash, and all together many.
func merging(operands []*ast.Term) int64 {
	equal := map[int]int64{}
	elements(operands[0], func(t *ast.Term) {
		elements(t, func(t *ast.Term) { equal[t.Hash()]++ })
	})
	return comparisons(equal)
}

// converting is the time for comparisons with a number, which are too many if it is too long.
func converting(operands []*ast.Term) int64 {
	if len(stringOf(operands[0])) > MaxNumber {
		return maxSteps + 1
	}
	return 0
}

// hasLongNumber reports whether a JSON text has a number of more than MaxNumber bytes.
func hasLongNumber(text string) bool {
	isText, length := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case isText:
			if c == '\\' {
				i++
			}
			isText = c != '"'
		case c == '"':
			isText, length = true, 0
		case '0' <= c && c <= '9' || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E':
			if length++; length > MaxNumber {
				return true
			}
		default:
			length = 0
		}
	}
	return false
}

// unmarshalling is the time for the objects that a JSON text becomes, and for comparisons with the numbers in it.
func unmarshalling(operands []*ast.Term) (sum int64) {
	text := stringOf(operands[0])
	if hasLongNumber(text) {
		return maxSteps + 1
	}
	if len(text) < smallText {
		return 0
	}
	var value any
	if util.UnmarshalJSON([]byte(text), &value) != nil {
		return 0
	}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				look(e)
			}
		case map[string]any:
			equal := map[int]int64{}
			for k, e := range v {
				equal[ast.String(k).Hash()]++
				look(e)
			}
			sum = min(sum+comparisons(equal), maxSteps+1)
		}
	}
	look(value)
	return sum
}

// comparisons is the time for a collection with so many values of each hash.
func comparisons(equal map[int]int64) (sum int64) {
	for _, n := range equal {
		sum = min(sum+times(n, comparison*n), maxSteps+1)
	}
	return sum
}

// ofPointer undoes what stands for a slash and a tilde in a part of a JSON pointer.
var ofPointer = strings.NewReplacer("~1", "/", "~0", "~")

// nodes is how many values there are in one, up to a number that is too many.
func nodes(t *ast.Term) int64 {
	c := scale{each: termBytes, plain: math.MaxInt}
	c.term(t)
	return c.sum / termBytes
}

// times is a product, or too many.
func times(a, b int64) int64 {
	if b != 0 && a > maxSteps/b {
		return maxSteps + 1
	}
	return a * b
}

// instructions bounds the size of the program that a pattern becomes, without making it, or is 0 if the pattern is none.
func instructions(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return 2 + instructionsOf(parsed) // the end, and a failure
}

func instructionsOf(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructionsOf(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += len(re.Rune)
	case syntax.OpCapture:
		n += 2
	case syntax.OpAlternate:
		n += len(re.Sub)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return n*max(1, re.Min) + 2
		}
		return n*re.Max + re.Max - re.Min + 1
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		n += 2
	default:
		n++
	}
	return n
}

// checkSteps fails if a call would take too long.
func checkSteps(name string, operands []*ast.Term) error {
	count, ok := steps[name]
	if !ok || count(operands) <= maxSteps {
		return nil
	}
	return fmt.Errorf("a call of %s would take more than %d steps: its operands are too long for one another", name, maxSteps)
}
