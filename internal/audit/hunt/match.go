package hunt

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// matcher says whether a record fits one search.
type matcher func(Fields) bool

// newMatcher reads a search: a map, all of whose fields must fit, or a list of maps, one of which must.
func (r *Rule) newMatcher(node *yaml.Node) (matcher, error) {
	switch node.Kind {
	case yaml.MappingNode:
		return r.allOf(node)
	case yaml.SequenceNode:
		var among []matcher
		for _, item := range node.Content {
			if item.Kind != yaml.MappingNode {
				return nil, errors.New("words without a field are not known here")
			}
			m, err := r.allOf(item)
			if err != nil {
				return nil, err
			}
			among = append(among, m)
		}
		if len(among) == 0 {
			return nil, errors.New("is empty")
		}
		return func(f Fields) bool { return slices.ContainsFunc(among, func(m matcher) bool { return m(f) }) }, nil
	}
	return nil, errors.New("must be a map of fields or a list of such maps")
}

func (r *Rule) allOf(node *yaml.Node) (matcher, error) {
	var all []matcher
	for i := 0; i+1 < len(node.Content); i += 2 {
		m, err := r.newField(node.Content[i].Value, node.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", node.Content[i].Value, err)
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, errors.New("is empty and would fit every record")
	}
	return func(f Fields) bool { return !slices.ContainsFunc(all, func(m matcher) bool { return !m(f) }) }, nil
}

// newField reads FIELD|MODIFIER|…: VALUE or a list of values, one of which must fit, or all with the modifier all.
func (r *Rule) newField(key string, node *yaml.Node) (matcher, error) {
	name, modifiers, err := split(key)
	if err != nil {
		return nil, err
	}
	r.asks = append(r.asks, name)
	values := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		values = node.Content
	}
	if len(values) == 0 {
		return nil, errors.New("has no value")
	}
	var tests []matcher
	for _, v := range values {
		if v.Kind != yaml.ScalarNode {
			return nil, errors.New("a value must be text, a number, true, false or null")
		}
		t, err := r.newValue(name, modifiers, v)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	if modifiers.all {
		return func(f Fields) bool { return !slices.ContainsFunc(tests, func(m matcher) bool { return !m(f) }) }, nil
	}
	return func(f Fields) bool { return slices.ContainsFunc(tests, func(m matcher) bool { return m(f) }) }, nil
}

type modifiers struct {
	how               string // equal, contains, startswith, endswith, re, exists, lt, lte, gt, gte
	all, cased, field bool
}

func split(key string) (name string, m modifiers, err error) {
	words := strings.Split(key, "|")
	m.how = "equal"
	for _, w := range words[1:] {
		switch w {
		case "all":
			m.all = true
		case "cased":
			m.cased = true
		case "fieldref":
			m.field = true
		case "contains", "startswith", "endswith", "re", "exists", "lt", "lte", "gt", "gte":
			if m.how != "equal" {
				return "", m, fmt.Errorf("%s and %s are one too many", m.how, w)
			}
			m.how = w
		default:
			return "", m, fmt.Errorf("the modifier %q is not known", w)
		}
	}
	if words[0] == "" {
		return "", m, errors.New("a field has no name")
	}
	if m.field && (m.how == "re" || m.how == "exists") {
		return "", m, errors.New("fieldref does not go with " + m.how)
	}
	return words[0], m, nil
}

func (r *Rule) newValue(name string, m modifiers, v *yaml.Node) (matcher, error) {
	switch {
	case v.Tag == "!!null":
		if m != (modifiers{how: "equal"}) {
			return nil, errors.New("null takes no modifiers")
		}
		return func(f Fields) bool { return f.first(name) == "" }, nil
	case m.field:
		r.asks = append(r.asks, v.Value)
		return func(f Fields) bool {
			return slices.ContainsFunc(f[v.Value], func(value string) bool {
				test, err := m.test(literal(value))
				return err == nil && slices.ContainsFunc(f[name], test)
			})
		}, nil
	case m.how == "exists":
		want, err := strconv.ParseBool(v.Value)
		return func(f Fields) bool { return len(f[name]) > 0 == want }, err
	case m.how == "re":
		re, err := regexp.Compile(v.Value)
		if err != nil {
			return nil, err
		}
		return func(f Fields) bool { return slices.ContainsFunc(f[name], re.MatchString) }, nil
	}
	parts, err := wildcards(v.Value)
	if err != nil {
		return nil, err
	}
	test, err := m.test(parts)
	return func(f Fields) bool { return slices.ContainsFunc(f[name], test) }, err
}

// test compares a value of a record.
func (m modifiers) test(want glob) (func(string) bool, error) {
	switch m.how {
	case "lt", "lte", "gt", "gte":
		bound, err := strconv.ParseFloat(want.text, 64)
		if err != nil || want.isWild {
			return nil, errors.New("is no number")
		}
		return func(s string) bool {
			n, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return false
			}
			return m.how == "lt" && n < bound || m.how == "lte" && n <= bound || m.how == "gt" && n > bound || m.how == "gte" && n >= bound
		}, nil
	}
	if m.how == "equal" && !want.isWild {
		if m.cased {
			return func(s string) bool { return s == want.text }, nil
		}
		return func(s string) bool { return strings.EqualFold(s, want.text) }, nil
	}
	expression := want.expression
	if m.how == "contains" || m.how == "endswith" {
		expression = "(?s:.*)" + expression
	}
	if m.how == "contains" || m.how == "startswith" {
		expression += "(?s:.*)"
	}
	flags := "(?i)"
	if m.cased {
		flags = ""
	}
	re, err := regexp.Compile(flags + "^(?:" + expression + ")$")
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
}

// glob is a value of a rule.
type glob struct {
	text       string // without escapes
	expression string // for package regexp, whose time is linear in the value
	isWild     bool
}

func literal(s string) glob { return glob{text: s, expression: regexp.QuoteMeta(s)} }

// wildcards reads * and ?, which a backslash makes plain; a backslash before anything else is itself.
func wildcards(s string) (g glob, err error) {
	if len(s) > 4096 {
		return g, errors.New("is too long")
	}
	var text, expression strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '*':
			g.isWild = true
			expression.WriteString("(?s:.*)")
			continue
		case s[i] == '?':
			g.isWild = true
			expression.WriteString("(?s:.)")
			continue
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(`*?\`, s[i+1]) >= 0:
			i++
		}
		text.WriteByte(s[i])
		expression.WriteString(regexp.QuoteMeta(s[i : i+1])) // which leaves the bytes of other characters alone
	}
	g.text, g.expression = text.String(), expression.String()
	return g, nil
}
