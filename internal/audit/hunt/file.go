package hunt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"go.yaml.in/yaml/v3"
)

// ruleFile is a document of a file of rules, with the names that Sigma has for its fields.
type ruleFile struct {
	Title          string               `yaml:"title"`
	ID             string               `yaml:"id"`
	Name           string               `yaml:"name"`
	Status         string               `yaml:"status"`
	Description    string               `yaml:"description"`
	References     []string             `yaml:"references"`
	Author         string               `yaml:"author"`
	Date           string               `yaml:"date"`
	Modified       string               `yaml:"modified"`
	Tags           []string             `yaml:"tags"`
	Logsource      logsource            `yaml:"logsource"`
	Detection      map[string]yaml.Node `yaml:"detection"`
	Correlation    *correlationFile     `yaml:"correlation"`
	Fields         []string             `yaml:"fields"`
	FalsePositives []string             `yaml:"falsepositives"`
	Level          string               `yaml:"level"`
}

type logsource struct {
	Product    string `yaml:"product"`
	Service    string `yaml:"service"`
	Definition string `yaml:"definition"`
}

type correlationFile struct {
	Type      string         `yaml:"type"`
	Rules     []string       `yaml:"rules"`
	GroupBy   []string       `yaml:"group-by"`
	Timespan  string         `yaml:"timespan"`
	Condition map[string]int `yaml:"condition"`
}

// Services whose logs rules can be about.
const (
	ServiceAudit = "audit" // the audit log
	ServiceProxy = "proxy" // the diagnostic log of the node proxy
)

// Rule is one detection.
type Rule struct {
	Title, ID, Name, Level, Description string
	Service                             string // of a single rule
	File                                string
	asks                                []string // the fields that its detection looks at

	when   condition          // nil for a correlation
	search map[string]matcher // by the names that when has
	burst  *burst             // nil for a single rule
	isPart bool               // it only feeds correlations
}

// Levels are the levels of rules, the least first.
func Levels() []string { return []string{"informational", "low", "medium", "high", "critical"} }

// Load reads all *.yml files of a directory. Every fault is reported at once: a rule that is not understood would find nothing.
func Load(dir fs.FS) ([]*Rule, error) {
	names, err := fs.Glob(dir, "*.yml")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("there are no rules: no *.yml files")
	}
	var rules []*Rule
	var faults []error
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		found, err := parse(path.Base(name), text)
		rules, faults = append(rules, found...), append(faults, err)
	}
	faults = append(faults, tie(rules))
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return rules, nil
}

// parse reads the documents of a file.
func parse(name string, text []byte) (rules []*Rule, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	for {
		var f ruleFile
		if err := decoder.Decode(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r, err := f.rule(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, f.Title, err)
		}
		rules = append(rules, r)
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("%s: holds no rule", name)
	}
	return rules, nil
}

// maxTimespan bounds how long a correlation remembers.
const maxTimespan = 24 * time.Hour
