package main

import (
	"encoding/json"
	"net/http"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/activerules"
	"github.com/pipeguard/pipeguard/internal/version"
)

// nodeState is the answer of /status: the policies that this node enforces, and the key that signs its records.
type nodeState struct {
	Node    string `json:"node"`
	Version string `json:"version"`
	// Schemas are the forms of bundles and of their access lists that this program reads.
	Schemas []string `json:"schemas"`
	// Pipes are the names, in lower case, of the pipes that this program serves now. It is never null.
	Pipes []string `json:"pipes"`
	// ACL is the access list of the node's own configuration.
	ACL struct {
		Revision string `json:"revision"`
	} `json:"acl"`
	// Bundle is the cluster's policies; left out if the configuration asks for none.
	Bundle *bundle.Status `json:"bundle,omitempty"`
	// Audit is the audit log; left out if records go to standard output.
	Audit *auditState `json:"audit,omitempty"`
}

// auditState has what a verifier needs to know of a log, and whether it takes records.
type auditState struct {
	Path string `json:"path"`
	// Key verifies its checkpoints.
	Key string `json:"key"`
	// LastSeq is the number of the last durable record.
	LastSeq uint64 `json:"lastSeq"`
	Fault   string `json:"fault,omitempty"`
}

// state is nil for standard output.
func (a *auditLog) state() *auditState {
	if a.segments == nil {
		return nil
	}
	s := &auditState{Path: a.path, Key: a.key, LastSeq: a.segments.Stats().Seq}
	if err := a.works(); err != nil {
		s.Fault = err.Error()
	}
	return s
}

// serveState adds the endpoint. Its answer has no secrets, and nothing that no metric shows. pipes returns those that are served.
func serveState(mux *http.ServeMux, node string, rules *activerules.Set, records *auditLog, pipes func() []string) {
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		s := nodeState{
			Node: node, Version: version.Number(), Schemas: append(access.Schemas(), bundle.Schema), Pipes: pipes(),
			Bundle: rules.Bundle(), Audit: records.state(),
		}
		if local := rules.Local(); local != nil {
			s.ACL.Revision = local.Policy.Revision
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s) // a client that has left needs no answer
	})
}
