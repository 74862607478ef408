package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/plainyaml"
	"github.com/pipeguard/pipeguard/internal/version"
)

// MaxSize bounds a configuration file in bytes: some ten thousand rules.
const MaxSize = 4 << 20

// APIVersion is that of every kind of configuration file.
const APIVersion = "pipeguard.dev/v1alpha1"

// Fault is a problem of one field of a file, such as acl.rules[0].name.
type Fault struct{ Field, Problem string }

// Faults are all faults of a file.
type Faults []Fault

// File is a configuration file, and knows where in it a field is. The zero value is no file.
type File struct {
	name string
	root *yaml.Node
}

// Read returns the text of a configuration file, which must be a regular file of at most MaxSize bytes, for Decode.
func Read(file string) ([]byte, error) { return atmost.ReadFile(file, MaxSize) }

// Decode reads one YAML document of a kind strictly into a pointer to a struct with yaml tags, and keeps what the document leaves out. A file that is too long, that is of another
// kind, that reads otherwise than it looks (package plainyaml), that has an unknown key or a second document is an error, each fault with its line. It does not
// check values: see CheckText. Its errors quote no value, which could be a secret in another file that was named by mistake, and keys of a file of that kind alone.
func Decode(name, kind string, text []byte, into any) (File, error) {
	if len(text) > MaxSize {
		return File{}, fmt.Errorf("configuration %s is longer than %d bytes", name, MaxSize)
	}
	file := File{name: name, root: &yaml.Node{}}
	if err := yaml.Unmarshal(text, file.root); err != nil {
		return File{}, fmt.Errorf("configuration %s: %w", name, plainyaml.Invalid(err))
	}
	if err := file.identify(kind); err != nil {
		return File{}, err
	}
	if err := plainyaml.Check(text); err != nil {
		return File{}, fmt.Errorf("configuration %s: %w", name, err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return File{}, fmt.Errorf("configuration %s: %w", name, withoutValues(err))
	}
	if line, err := plainyaml.Second(text); err != nil || line > 0 {
		return File{}, fmt.Errorf("configuration %s: more than one document", name)
	}
	return file, nil
}

// identify refuses a file of another kind, an empty one among them.
func (s File) identify(kind string) error {
	var faults Faults
	for _, f := range []struct{ field, want string }{{"apiVersion", APIVersion}, {"kind", kind}} {
		if node := s.exact(f.field); node == nil || node.Kind != yaml.ScalarNode || node.Value != f.want {
			faults = append(faults, Fault{f.field, "want " + f.want})
		}
	}
	return s.Locate(faults)
}

// The faults that a decoder finds, with the text that it quotes.
var (
	unknownField = regexp.MustCompile(`(?s)^line (\d+): field (.*) not found in type .+$`)
	wrongType    = regexp.MustCompile("(?s)^line (\\d+): cannot unmarshal (!![a-z]+)(?: `.*`)? into (.+)$")
)

// withoutValues makes of a decoder's error, which joins all faults in one text, one fault each, and leaves out the values that it quotes.
func withoutValues(err error) error {
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return errors.New("a list or mapping as a key")
	}
	faults := make([]error, len(wrong.Errors))
	for i, text := range wrong.Errors {
		if at := unknownField.FindStringSubmatch(text); at != nil {
			faults[i] = fmt.Errorf("line %s: unknown key %s: %s does not have it; correct the key, or run the release that has it", at[1], plainyaml.Quoted(at[2]), version.Number())
		} else if at := wrongType.FindStringSubmatch(text); at != nil {
			faults[i] = fmt.Errorf("line %s: a value of type %s where %s is expected", at[1], at[2], at[3])
		} else {
			faults[i] = errors.New("a value of another type than its key has")
		}
	}
	return errors.Join(faults...)
}

// IsMissing says that there is no file.
func (s File) IsMissing() bool { return s.root == nil }

// Has says whether the file has the field.
func (s File) Has(field string) bool { return s.root != nil && s.exact(field) != nil }

// Locate makes one error of all faults, one a line, each with the line and column of its field, or of the nearest
// parent that the file has.
func (s File) Locate(faults Faults) error {
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = errors.New(s.Line(f))
	}
	return errors.Join(errs...)
}

// Line is the text of a fault, with its place: FILE:LINE:COLUMN: FIELD: PROBLEM. Without a file it is FIELD: PROBLEM.
func (s File) Line(f Fault) string {
	if s.IsMissing() {
		return f.Field + ": " + f.Problem
	}
	node, _ := s.follow(f.Field)
	return fmt.Sprintf("%s:%d:%d: %s: %s", s.name, max(node.Line, 1), max(node.Column, 1), f.Field, f.Problem)
}

// exact follows a path such as acl.rules[0].name to its end. It returns nil if nothing is there.
func (s File) exact(field string) *yaml.Node {
	if node, ok := s.follow(field); ok {
		return node
	}
	return nil
}

// follow follows a path as far as it goes, and says whether that is its end.
func (s File) follow(field string) (node *yaml.Node, ok bool) {
	node = s.root
	if len(node.Content) > 0 {
		node = node.Content[0]
	}
	for _, step := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(node, step)
		if next == nil {
			return node, false
		}
		node = next
	}
	return node, true
}

func child(node *yaml.Node, step string) *yaml.Node {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			return node.Content[i]
		}
	}
	return nil
}
