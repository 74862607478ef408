package main

import (
	"encoding/json"
	"net/http"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/rulebook"
	"github.com/pipeguard/pipeguard/internal/version"
)

// nodeState is the answer of /status: by which policies this node decides.
type nodeState struct {
	Node    string `json:"node"`
	Version string `json:"version"`
	// ACL is the access list of the node's own configuration.
	ACL struct {
		Revision string `json:"revision"`
	} `json:"acl"`
	// Bundle is the cluster's policies; left out if the configuration asks for none.
	Bundle *bundle.Status `json:"bundle,omitempty"`
}

// serveState adds the endpoint. It holds no secrets, and nothing that a metric does not say too.
func serveState(mux *http.ServeMux, node string, book *rulebook.Book) {
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		s := nodeState{Node: node, Version: version.Number(), Bundle: book.Bundle()}
		if local := book.Local(); local != nil {
			s.ACL.Revision = local.Policy.Revision
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s) // whoever has left needs no answer
	})
}
