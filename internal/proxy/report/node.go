package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// States of a node, as api/v1alpha1 has them. The types there are not used: with them come the libraries of Kubernetes,
// and what this writes is a dozen fields.
const (
	guarding    = "Guarding"
	denying     = "Denying"
	local       = "Local"
	unreachable = "Unreachable"
)

// node is a GuardedNode but for its metadata.
type node struct {
	ReportedAt  time.Time `json:"reportedAt"`
	State       string    `json:"state"`
	Version     string    `json:"version,omitempty"`
	Message     string    `json:"message,omitempty"`
	ACLRevision string    `json:"aclRevision,omitempty"`
	AuditKey    string    `json:"auditKey,omitempty"`
	Schemas     []string  `json:"schemas,omitempty"`
	Pipes       []string  `json:"pipes,omitzero"` // nil if they are not known
	Bundle      *held     `json:"bundle,omitempty"`
}

// held is the node's bundle.
type held struct {
	Pool           string    `json:"pool"`
	Revision       int64     `json:"revision"`
	PolicyRevision string    `json:"policyRevision,omitempty"`
	Key            string    `json:"key,omitempty"`
	IssuedAt       time.Time `json:"issuedAt,omitzero"`
	ExpiresAt      time.Time `json:"expiresAt,omitzero"`
	Invalid        string    `json:"invalid,omitempty"`
	Refused        string    `json:"refused,omitempty"`
}

// Bounds of the schema, in bytes; maxSchemas and maxPipes are numbers.
const (
	maxMessage = 1024
	maxText    = 128
	maxWord    = 64
	maxPool    = 63
	maxKey     = 384
	maxSchemas = 8
	maxPipes   = 64
	maxPipe    = 63
)

// pipeName is the schema's pattern of names of pipes.
var pipeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// describe puts what the service answers into the words of a report. fault is what keeps the installation from being as
// it should be, or nil.
func describe(s status, err, fault error) node {
	var messages []string
	out := node{State: unreachable}
	if err != nil {
		messages = append(messages, "the service does not answer: "+err.Error())
	} else {
		out.State, out.Version, out.ACLRevision, out.AuditKey = local, clip(s.Version, maxText), clip(s.ACL.Revision, maxText), clip(s.Audit.Key, maxKey)
		for _, schema := range s.Schemas[:min(len(s.Schemas), maxSchemas)] {
			out.Schemas = append(out.Schemas, clip(schema, maxWord))
		}
		if out.Pipes = listed(s.Pipes); len(out.Pipes) > maxPipes { // a shorter list would say of the others that they are not served
			messages = append(messages, fmt.Sprintf("pipes not reported: %d are served, and a report has room for %d", len(out.Pipes), maxPipes))
			out.Pipes = nil
		}
	}
	if b := s.Bundle; err == nil && b != nil {
		out.State = guarding
		out.Bundle = &held{
			Pool: clip(b.Audience, maxPool), Revision: int64(min(b.Revision, 1<<62)), PolicyRevision: clip(b.PolicyRevision, maxText), //nolint:gosec // bounded
			Key: clip(b.Key, maxText), IssuedAt: whole(b.IssuedAt), ExpiresAt: whole(b.ExpiresAt), Invalid: clip(b.Invalid, maxWord),
		}
		if b.Invalid != "" {
			out.State = denying
			messages = append(messages, "every call is denied: there is no valid bundle ("+b.Invalid+")")
		}
		if r := b.Refused; r != nil {
			out.Bundle.Refused = clip(r.Reason, maxWord)
			messages = append(messages, "bundle refused: "+r.Message)
		}
	}
	if fault != nil {
		messages = append(messages, "installation: "+fault.Error())
	}
	out.Message = clip(strings.Join(messages, "\n"), maxMessage)
	return out
}

// listed are the names that the schema takes, sorted, each once; nil if nothing is known.
func listed(pipes []string) []string {
	if pipes == nil {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(pipes), func(name string) bool { return len(name) > maxPipe || !pipeName.MatchString(name) })
	slices.Sort(out)
	return slices.Compact(out)
}

// whole cuts a time to seconds in UTC, which is all that the API keeps.
func whole(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

// clip cuts a text that the schema would refuse, between two characters.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// isAs says whether two reports tell the same, whatever they were told at; isAsGood leaves the message aside too, which
// may hold times and counts.
func (n node) isAs(o node) bool { return n.Message == o.Message && n.isAsGood(o) }

func (n node) isAsGood(o node) bool {
	if (n.Bundle == nil) != (o.Bundle == nil) || n.Bundle != nil && *n.Bundle != *o.Bundle {
		return false
	}
	if (n.Pipes == nil) != (o.Pipes == nil) || !slices.Equal(n.Pipes, o.Pipes) {
		return false
	}
	return n.State == o.State && n.Version == o.Version && n.ACLRevision == o.ACLRevision && n.AuditKey == o.AuditKey && slices.Equal(n.Schemas, o.Schemas)
}
