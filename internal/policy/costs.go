package policy

import (
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Bytes that OPA takes for parts of values, rounded up.
const (
	termBytes   = 64  // a value and its place in an array, without its text
	memberBytes = 192 // a member of a set or an object
	runeBytes   = 5   // a rune of a text that is taken apart, and its part of the new text
	// escapedBytes is what a byte may become in a text: \u0000. Quoted twice, its backslash has another.
	escapedBytes = 8
)

// costs has the most bytes that a call of a function makes, for each allowed function that can make more than a few. It is asked before
// the function runs. Operands of other types cost nothing: the function refuses them.
var costs = map[string]func(operands []*ast.Term) int64{
	"and":                      collections,
	"array.concat":             collections,
	"array.reverse":            collections,
	"array.slice":              collections,
	"base64.decode":            texts,
	"concat":                   costOfConcat,
	"format_int":               numbers,
	"indexof":                  texts,
	"internal.template_string": func(o []*ast.Term) int64 { return 2 * printed(o[0], 2) }, // each part may be in a set
	"intersection":             members,
	"json.filter":              trees,
	"json.remove":              trees,
	"json.unmarshal":           costOfUnmarshal,
	"lower":                    texts,
	"minus":                    numbersOrCollections,
	"object.filter":            collections,
	"object.keys":              collections,
	"object.remove":            collections,
	"object.union":             func(o []*ast.Term) int64 { return costOfUnion(o[0], o[1], new(int)) },
	"or":                       collections,
	"plus":                     numbers,
	"regex.find_n":             matches,
	"regex.is_valid":           matches,
	"regex.split":              matches,
	"replace":                  costOfReplace,
	"sort":                     collections,
	"split":                    costOfSplit,
	"sprintf":                  costOfSprintf,
	"strings.any_prefix_match": lists,
	"strings.any_suffix_match": lists,
	"strings.reverse":          texts,
	"substring":                texts,
	"sum":                      members,
	"to_number":                texts,
	"union":                    members,
	"upper":                    texts,
}

// modest are the allowed functions without a cost: their results are yes or no, a small number or text, or one of their operands or
// a part of it.
var modest = []string{
	"assign", "base64.is_valid", "contains", "count", "endswith", "eq", "equal", "gt", "gte",
	"internal.member_2", "internal.member_3", "is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string",
	"json.is_valid", "lt", "lte", "max", "min", "neq", "object.get", "object.subset",
	"regex.match", "semver.compare", "semver.is_valid", "startswith", "strings.count",
	"time.parse_duration_ns", "time.parse_rfc3339_ns",
	"trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "type_name",
	"walk", // which takes the cost of each result
}

func stringOf(t *ast.Term) string {
	s, _ := t.Value.(ast.String)
	return string(s)
}

// length is the number of elements or members.
func length(v ast.Value) int64 {
	switch v := v.(type) {
	case *ast.Array:
		return int64(v.Len())
	case ast.Set:
		return int64(v.Len())
	case ast.Object:
		return int64(v.Len())
	}
	return 0
}

// texts is the cost of a text that is as long as the operands, for functions that may take it apart.
func texts(operands []*ast.Term) int64 {
	n := int64(termBytes)
	for _, o := range operands {
		n += runeBytes * int64(len(stringOf(o)))
	}
	return n
}

// lists is the cost of copies of all texts in the operands.
func lists(operands []*ast.Term) int64 {
	n := texts(operands)
	for _, o := range operands {
		elements(o, func(e *ast.Term) { n += termBytes + int64(len(stringOf(e))) })
	}
	return n
}

// collections is the cost of a collection of all that is in the operands.
func collections(operands []*ast.Term) int64 {
	n := int64(termBytes)
	for _, o := range operands {
		if a, ok := o.Value.(*ast.Array); ok {
			n += termBytes * int64(a.Len())
			continue
		}
		n += memberBytes * length(o.Value)
	}
	return n
}

// members is the cost of a collection of all that is in the elements of the operand, or of their sum.
func members(operands []*ast.Term) int64 {
	n := int64(termBytes)
	elements(operands[0], func(e *ast.Term) {
		n += memberBytes*length(e.Value) + digits(e)
	})
	return n
}

func elements(t *ast.Term, f func(*ast.Term)) {
	switch v := t.Value.(type) {
	case *ast.Array:
		v.Foreach(f)
	case ast.Set:
		v.Foreach(f)
	}
}

// numbers is the cost of a number that is written out.
func numbers(operands []*ast.Term) int64 {
	n := int64(termBytes)
	for _, o := range operands {
		n += runeBytes * digits(o) // also in base 2
	}
	return n
}

// maxExponent is more than any number needs; one with a greater exponent is not written out.
const maxExponent = 1 << 16

// digits bounds the length of a number without an exponent.
func digits(t *ast.Term) int64 {
	s, ok := t.Value.(ast.Number)
	if !ok {
		return 0
	}
	i := strings.IndexAny(string(s), "eE")
	if i < 0 {
		return int64(len(s))
	}
	exponent, err := strconv.Atoi(string(s[i+1:]))
	if err != nil || exponent > maxExponent || exponent < -maxExponent {
		return maxMade
	}
	return int64(len(s)) + int64(max(exponent, -exponent))
}

func numbersOrCollections(operands []*ast.Term) int64 {
	return numbers(operands) + collections(operands)
}

// matches is the cost of as many matches in the text as it has bytes, at most as many as are asked for.
func matches(operands []*ast.Term) int64 {
	var n int64
	for _, o := range operands {
		n = max(n, int64(len(stringOf(o)))+1)
	}
	return termBytes + termBytes*n
}

func costOfConcat(operands []*ast.Term) int64 {
	n := int64(termBytes)
	elements(operands[1], func(e *ast.Term) { n += int64(len(stringOf(e)) + len(stringOf(operands[0]))) })
	return 2 * n // it is written, then copied
}

// costOfReplace counts the texts that are replaced. The result grows by doubling, and is copied then.
func costOfReplace(operands []*ast.Term) int64 {
	text, old, replacement := stringOf(operands[0]), stringOf(operands[1]), stringOf(operands[2])
	return termBytes + 3*(int64(len(text))+int64(strings.Count(text, old))*int64(len(replacement)))
}

func costOfSplit(operands []*ast.Term) int64 {
	return termBytes + termBytes*int64(strings.Count(stringOf(operands[0]), stringOf(operands[1]))+1)
}

// costOfSprintf counts each operand once: formats have no indices, widths or precisions, see bounded.
func costOfSprintf(operands []*ast.Term) int64 {
	format, factor := stringOf(operands[0]), int64(1)
	if strings.Contains(format, "%q") || strings.Contains(format, "%x") {
		factor = escapedBytes
	}
	return 2 * (termBytes*int64(strings.Count(format, "%")+1) + int64(len(format)) + factor*printed(operands[1], 1))
}

// costOfUnmarshal counts what separates values.
func costOfUnmarshal(operands []*ast.Term) int64 {
	n, text := int64(1), stringOf(operands[0])
	for i := range len(text) {
		switch text[i] {
		case ',', ':', '[', '{':
			n++
		}
	}
	return 2*memberBytes*n + 2*int64(len(text)) // once as Go's values
}

// costOfPath is that of a result of walk.
func costOfPath(t *ast.Term) int64 {
	pair, ok := t.Value.(*ast.Array)
	if !ok || pair.Len() == 0 {
		return termBytes
	}
	return 2*termBytes + 16*length(pair.Elem(0).Value)
}

// costOfUnion counts the members of both objects, and of those that are in both and are merged. It gives up when it has seen more
// than a budget holds.
func costOfUnion(a, b *ast.Term, seen *int) int64 {
	x, ok := a.Value.(ast.Object)
	y, both := b.Value.(ast.Object)
	if !ok || !both {
		return 0
	}
	n := termBytes + memberBytes*(length(x)+length(y))
	if *seen += x.Len() + y.Len() + 1; *seen > maxMade/memberBytes {
		return maxMade + 1
	}
	x.Until(func(k, v *ast.Term) bool {
		if other := y.Get(k); other != nil {
			n += costOfUnion(v, other, seen)
		}
		return n > maxMade
	})
	return n
}

// trees is the cost of a copy of the first operand without its texts, and of the paths in the second.
func trees(operands []*ast.Term) int64 {
	c, paths := scale{each: memberBytes / 2, plain: -1}, scale{each: memberBytes, text: termBytes, plain: -1}
	c.term(operands[0])
	paths.term(operands[1])
	return termBytes + c.sum + paths.sum
}

// printed bounds the text of a value. Texts that lie at most so many levels below it are printed as they are, others escaped.
func printed(t *ast.Term, levels int) int64 {
	c := scale{each: termBytes, text: escapedBytes, plain: levels}
	c.term(t)
	return c.sum
}

// scale adds up a value as a tree, however much of it is shared, until that is more than a budget holds.
type scale struct {
	each, text int64 // the cost of a value, and of a byte of its text
	plain      int   // so many more levels have texts that cost 1
	sum        int64
}

func (c *scale) term(t *ast.Term) (isOver bool) {
	c.sum += c.each
	switch v := t.Value.(type) {
	case ast.String:
		c.write(len(v))
	case ast.Number:
		c.write(len(v))
	case *ast.Array, ast.Set, ast.Object:
		c.plain--
		c.collection(v)
		c.plain++
	}
	return c.sum > maxMade
}

func (c *scale) write(n int) {
	factor := c.text
	if c.plain >= 0 && c.text > 0 {
		factor = 1
	}
	c.sum += factor * int64(n)
}

func (c *scale) collection(v ast.Value) {
	switch v := v.(type) {
	case *ast.Array:
		for i := range v.Len() {
			if c.term(v.Elem(i)) {
				return
			}
		}
	case ast.Set:
		v.Until(c.term)
	case ast.Object:
		v.Until(func(k, e *ast.Term) bool { return c.term(k) || c.term(e) })
	}
}
