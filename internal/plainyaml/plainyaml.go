// Package plainyaml refuses YAML whose meaning differs from its appearance. Every security-relevant YAML file passes through it.
package plainyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// maxFaults bounds what an error lists.
const maxFaults = 10

// Check returns an error with the line of each character that editors show otherwise than YAML reads it, or not at all (a
// comment may end in the middle of what looks like one), of each explicit tag, under which a value is another than its text, of each number that is not in decimal digits, of each anchor, alias and merge, by which a text says in one place what holds in another, of each key that is read as another text,
// of each that escapes a character which needs no escape, and of each that stands there twice. The error quotes keys and tags, and no value.
func Check(text []byte) error {
	if err := characters(text); err != nil {
		return err
	}
	var faults []error
	keys := keyReader{rest: bytes.TrimPrefix(text, byteOrderMark), line: 1, column: 1}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return errors.Join(faults...)
		case err != nil:
			return Invalid(err)
		}
		if faults = keys.tags(&document, faults); len(faults) >= maxFaults {
			return errors.Join(faults...)
		}
	}
}

// Invalid is the error for text that a YAML parser has refused. Of the text it says the line alone: the name of an anchor, which the parser
// quotes, can be part of a secret.
func Invalid(err error) error {
	if strings.HasPrefix(err.Error(), "yaml: unknown anchor ") {
		return errors.New("not valid YAML: an alias of an anchor that is not there")
	}
	return fmt.Errorf("not valid YAML: %w", err)
}

// Second returns the line of a second document, which a reader of one leaves out although it may be what was meant, or 0. For
// sigs.k8s.io/yaml a document also ends behind a list or mapping that is a key.
func Second(text []byte) (line int, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return 0, Invalid(err)
		case line > 0:
			return document.Line, nil
		}
		line = document.Line
		if root := document.Content[0]; root.Kind == yaml.MappingNode && len(root.Content) > 0 && root.Content[0].Kind != yaml.ScalarNode {
			return line, nil
		}
	}
}

var byteOrderMark = []byte("\ufeff") // with which some editors begin every file

func characters(text []byte) error {
	text = bytes.TrimPrefix(text, byteOrderMark)
	line := 1
	var faults []error
	for i, width := 0, 0; i < len(text) && len(faults) < maxFaults; i += width {
		var r rune
		r, width = utf8.DecodeRune(text[i:])
		switch {
		case r == '\n':
			line++
		case r == '\t', r == '\r' && bytes.HasPrefix(text[i+1:], []byte("\n")):
		case r == utf8.RuneError && width == 1:
			faults = append(faults, fmt.Errorf("line %d: not UTF-8", line))
		case r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
			faults = append(faults, fmt.Errorf("line %d: %U ends a line, and editors do not show it: remove it, or write it as an escape in double quotes", line, r))
		case !inert.IsInert(r) && !unicode.Is(unicode.M, r): // marks belong to the writing of many languages
			faults = append(faults, fmt.Errorf("line %d: %U does not show: remove it, or write it as an escape in double quotes", line, r))
		}
	}
	return errors.Join(faults...)
}

// decimal is how a whole number is written. YAML takes 0400 for 256, 0x10 for 16 and 1_0 for 10 as well.
var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

// isNoText says whether a plain key is read as a truth value, a fraction or nothing, and becomes the text of that. YAML 1.1 has more words for these than what
// parses here: https://yaml.org/type/bool.html
func isNoText(key *yaml.Node) bool {
	switch key.Tag {
	case "!!bool", "!!float", "!!null":
		return true
	}
	switch strings.ToLower(key.Value) {
	case "y", "yes", "on", "n", "no", "off":
		return true
	}
	return false
}

// short is at most the beginning of a text.
func short(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// Quoted is a key for an error: escaped, and cut off where it is long.
func Quoted(key string) string { return strconv.Quote(short(key)) }

// escapes matches an escape of a double-quoted key, with the number of the character if that is what it has, or the end of the key or of the line.
var escapes = regexp.MustCompile(`\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)|["\n]`)

// keyReader reads keys as they are written, in the order in which they stand in a text. To find each from the beginning would take a text
// of one long line quadratic time.
type keyReader struct {
	rest         []byte // that begins at the place
	line, column int    // of the rest, from 1; columns count characters
}

// isSpelledOut says whether a double-quoted key has an escape in place of a character that needs none: "\u006cog" is the key log, and looks
// like another one. What JSON encoders escape is no such character. A key that ends on another line counts as one.
func (r *keyReader) isSpelledOut(key *yaml.Node) bool {
	for r.line < key.Line || r.line == key.Line && r.column < key.Column {
		if len(r.rest) == 0 {
			return true
		}
		c, width := utf8.DecodeRune(r.rest)
		if r.rest = r.rest[width:]; c == '\n' {
			r.line, r.column = r.line+1, 1
		} else {
			r.column++
		}
	}
	written, isQuoted := bytes.CutPrefix(r.rest, []byte{'"'})
	for isQuoted {
		at := escapes.FindSubmatchIndex(written)
		switch {
		case at == nil, written[at[0]] == '\n':
			return true
		case written[at[0]] == '"':
			return false
		}
		for i := 2; i < len(at); i += 2 {
			if at[i] < 0 {
				continue
			}
			if c, err := strconv.ParseUint(string(written[at[i]:at[i+1]]), 16, 32); err != nil || ' ' <= c && c <= '~' && !strings.ContainsRune(`"\<>&`, rune(c)) {
				return true
			}
		}
		written = written[at[1]:]
	}
	return true
}

// tags adds the faults of a node and of what is in it.
func (r *keyReader) tags(n *yaml.Node, faults []error) []error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" {
		faults = append(faults, fmt.Errorf("line %d: anchors, aliases and merges (<<) are not taken: write the value, or the key, where it holds", n.Line))
	}
	if n.Style&yaml.TaggedStyle != 0 {
		faults = append(faults, fmt.Errorf("line %d: the tag %s makes another value of the text: remove it, and write the value itself", n.Line, short(n.Tag)))
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!int" && !decimal.MatchString(n.Value) {
		faults = append(faults, fmt.Errorf("line %d: a number of another base, or with signs in it, would be read as another than it looks: write it in decimal digits, or in quotes if it is a text", n.Line))
	}
	keys := map[string]bool{}
	for i, child := range n.Content {
		if len(faults) >= maxFaults {
			break
		}
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode {
			if keys[child.Value] { // the decoder would make a message for each pair of equal ones
				faults = append(faults, fmt.Errorf("line %d: key %s is already defined", child.Line, Quoted(child.Value)))
			}
			keys[child.Value] = true
			if child.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 && isNoText(child) {
				faults = append(faults, fmt.Errorf("line %d: key %s is read as another than it looks: write it in quotes", child.Line, Quoted(child.Value)))
			}
			if child.Style&yaml.DoubleQuotedStyle != 0 && r.isSpelledOut(child) {
				faults = append(faults, fmt.Errorf("line %d: key %s has an escape for a character that needs none, and looks like another key: write the character itself", child.Line, Quoted(child.Value)))
			}
		}
		faults = r.tags(child, faults)
	}
	return faults
}
