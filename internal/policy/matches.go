package policy

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// One match of a pattern takes time in proportion to the text, see matching, and to look for all of them may take as much for each: a pattern like
// a.*b|a reads to the end of the text before it is content with one letter. So where there could be too many matches for their number alone to bound
// the time, they are looked for once before, and the time-out is looked at between them. What took its time then takes it once more.

// allMatches are the functions that look for every match of their first operand in their second, with the most that they look for.
var allMatches = map[string]func(operands []*ast.Term) int{
	"regex.find_n": func(o []*ast.Term) int {
		n, _ := o[2].Value.(ast.Number)
		most, ok := n.Int()
		if !ok {
			return -1
		}
		return most
	},
	"regex.split": func([]*ast.Term) int { return -1 },
}

var (
	errMatches = errors.New("the evaluation ended while it looked for the matches of a pattern")
	errEnough  = errors.New("no more matches are looked for")
)

// checkMatches looks for the matches of a call before it is made. It fails if the evaluation ends meanwhile.
func checkMatches(bctx topdown.BuiltinContext, name string, operands []*ast.Term) (err error) {
	most, ok := allMatches[name]
	if !ok {
		return nil
	}
	text := stringOf(operands[1])
	if times(matching(operands), int64(len(text))+1) <= maxSteps {
		return nil
	}
	pattern, err := regexp.Compile(stringOf(operands[0]))
	if err != nil {
		return nil // of which the function tells
	}
	left := most(operands)
	defer func() {
		switch p := recover(); p {
		case nil, errEnough: //nolint:errorlint // a value of our own
		case errMatches: //nolint:errorlint // likewise
			err = fmt.Errorf("%w %s", errMatches, name)
		default:
			panic(p)
		}
	}()
	pattern.ReplaceAllStringFunc(text, func(string) string {
		if left == 0 {
			panic(errEnough)
		}
		left--
		if bctx.Cancel != nil && bctx.Cancel.Cancelled() {
			panic(errMatches)
		}
		return ""
	})
	return nil
}
