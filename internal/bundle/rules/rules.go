// Package rules holds the words in which PipePolicies go to nodes: what they say, without Kubernetes' types.
// It trusts the signature of the bundle around them, and still takes no word that it does not know.
package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Schema is the form of a Document. A later one is refused and not half understood.
const Schema = "pipeguard.dev/node-rules/v1"

// Document is the access list of a bundle. Without policies nobody may do anything.
type Document struct {
	Schema   string   `json:"schema"`
	Policies []Policy `json:"policies"`
}

// Policy is what a PipePolicy says of nodes.
type Policy struct {
	// Name is that of the object.
	Name string `json:"name"`
	// Pipes are names of pipes, or beginnings of names that end in "*", in lower case.
	Pipes []string `json:"pipes"`
	// LogOnly lets pass what the policy does not permit, and records it.
	LogOnly bool `json:"logOnly,omitempty"`
	// Methods are the newest names of the operations; none means all.
	Methods []string `json:"methods,omitempty"`
	// PathPrefixes are the directories that calls may name; none means the working directories of the proxy.
	PathPrefixes []string `json:"pathPrefixes,omitempty"`
	// RequireToken asks callers for a token of their service account.
	RequireToken bool `json:"requireToken,omitempty"`
	// Subjects may call. Without any, nobody may.
	Subjects []Subject `json:"subjects,omitempty"`
}

// Subject is containers of pods in one namespace, narrowed by each list that is not empty.
type Subject struct {
	Name            string   `json:"name"`
	Namespace       string   `json:"namespace"`
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	Containers      []string `json:"containers,omitempty"`
	Images          []string `json:"images,omitempty"`
	// ExpiresAt is when the permission ends, by the clock of the node; zero means never.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// HasEnded says whether the subject is nobody any more.
func (s Subject) HasEnded(now time.Time) bool {
	return !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt)
}

// Callers is how many combinations the lists of a subject make; each becomes a pattern of the access list.
func (s Subject) Callers() int {
	return max(1, len(s.ServiceAccounts)) * max(1, len(s.Containers)) * max(1, len(s.Images))
}

// Bounds. They hold where policies are compiled and where they are read.
const (
	// MaxCallers bounds the combinations of one subject: three lists of 64 would make 262,144.
	MaxCallers = 4096
	// MaxAllCallers bounds those of all subjects together.
	MaxAllCallers = 100_000
	// MaxPolicies bounds the policies.
	MaxPolicies = 10_000
)

// Parse reads a Document. Unknown words are errors.
func Parse(text []byte) (Document, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var out Document
	if err := d.Decode(&out); err != nil {
		return Document{}, fmt.Errorf("access list: %w", err)
	}
	if d.More() {
		return Document{}, errors.New("access list: more than one JSON value")
	}
	return out, out.Check()
}

// Check reports every fault at once.
func (d Document) Check() error {
	var faults []error
	add := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("access list: "+format, args...))
	}
	if d.Schema != Schema {
		add("schema %q: want %q", d.Schema, Schema)
	}
	if len(d.Policies) > MaxPolicies {
		add("%d policies, and at most %d are taken", len(d.Policies), MaxPolicies)
	}
	names, all := map[string]bool{}, 0
	for _, p := range d.Policies {
		if p.Name == "" || names[p.Name] {
			add("policy %q: the name is empty or another's", p.Name)
		}
		names[p.Name] = true
		if len(p.Pipes) == 0 {
			add("policy %q: no pipes", p.Name)
		}
		subjects := map[string]bool{}
		for _, s := range p.Subjects {
			if s.Name == "" || subjects[s.Name] {
				add("policy %q: subject %q: the name is empty or another's", p.Name, s.Name)
			}
			subjects[s.Name] = true
			if s.Namespace == "" {
				add("policy %q: subject %q: no namespace: it would be everybody", p.Name, s.Name)
			}
			if n := s.Callers(); n > MaxCallers {
				add("policy %q: subject %q: its lists make %d combinations, and at most %d are taken: make several subjects of it", p.Name, s.Name, n, MaxCallers)
			}
			all += s.Callers()
		}
	}
	if all > MaxAllCallers {
		add("the subjects make %d combinations of callers, and at most %d are taken", all, MaxAllCallers)
	}
	return errors.Join(faults...)
}
