package hunt

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// condition says whether a record fits, given which searches it fits.
type condition func(fits func(name string) bool) bool

// parseCondition reads: and, or, not, parentheses, names of searches, and "1 of NAME*", "all of NAME*", "1 of them", "all of them".
func parseCondition(text string, search map[string]matcher) (condition, error) {
	text = strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)
	p := &conditionParser{words: strings.Fields(text), names: slices.Sorted(maps.Keys(search)), used: map[string]bool{}}
	if len(p.words) == 0 {
		return nil, errors.New("is missing")
	}
	c, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if len(p.words) > 0 {
		return nil, fmt.Errorf("%q is too many", p.words[0])
	}
	for _, name := range p.names { // a search that the condition does not use is a slip of the pen
		if !p.used[name] {
			return nil, fmt.Errorf("%s is not part of it", name)
		}
	}
	return c, nil
}

type conditionParser struct {
	words []string
	names []string
	used  map[string]bool
}

// maxDepth bounds parentheses and not.
const maxDepth = 20

func (p *conditionParser) take(word string) bool {
	if len(p.words) == 0 || p.words[0] != word {
		return false
	}
	p.words = p.words[1:]
	return true
}

func (p *conditionParser) or(depth int) (condition, error) {
	parts, err := p.list("or", depth, p.and)
	return func(fits func(string) bool) bool {
		return slices.ContainsFunc(parts, func(c condition) bool { return c(fits) })
	}, err
}

func (p *conditionParser) and(depth int) (condition, error) {
	parts, err := p.list("and", depth, p.one)
	return func(fits func(string) bool) bool {
		return !slices.ContainsFunc(parts, func(c condition) bool { return !c(fits) })
	}, err
}

// list reads conditions with a word between them.
func (p *conditionParser) list(word string, depth int, next func(depth int) (condition, error)) (parts []condition, err error) {
	for {
		c, err := next(depth)
		if parts = append(parts, c); err != nil || !p.take(word) {
			return parts, err
		}
	}
}

func (p *conditionParser) one(depth int) (condition, error) {
	switch {
	case depth > maxDepth:
		return nil, errors.New("is nested too deeply")
	case len(p.words) == 0:
		return nil, errors.New("ends too early")
	case p.take("not"):
		c, err := p.one(depth + 1)
		return func(fits func(string) bool) bool { return !c(fits) }, err
	case p.take("("):
		c, err := p.or(depth + 1)
		if err == nil && !p.take(")") {
			err = errors.New("a parenthesis is not closed")
		}
		return c, err
	case p.take("1"):
		names, err := p.of()
		return func(fits func(string) bool) bool { return slices.ContainsFunc(names, fits) }, err
	case p.take("all"):
		names, err := p.of()
		return func(fits func(string) bool) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return !fits(name) })
		}, err
	}
	name := p.words[0]
	if !slices.Contains(p.names, name) {
		return nil, fmt.Errorf("there is no %q", name)
	}
	p.words, p.used[name] = p.words[1:], true
	return func(fits func(string) bool) bool { return fits(name) }, nil
}

// of reads "of them" or "of NAME*".
func (p *conditionParser) of() (names []string, err error) {
	if !p.take("of") || len(p.words) == 0 {
		return nil, errors.New("1 or all stands before: of them, of NAME*")
	}
	pattern := p.words[0]
	p.words = p.words[1:]
	if pattern == "them" {
		pattern = "*"
	}
	for _, name := range p.names {
		if ok, err := path.Match(pattern, name); err != nil {
			return nil, fmt.Errorf("%q: %w", pattern, err)
		} else if ok {
			names, p.used[name] = append(names, name), true
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("nothing is named %s", pattern)
	}
	return names, nil
}
